//! One question to an agent anywhere, in whichever generation it speaks:
//! `cargo run --example call -- http://127.0.0.1:4242 'how much is 10 USD in INR?'`

use std::error::Error;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the answer is what this program is for")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "http://127.0.0.1:4242".into());
    let text = words.next().unwrap_or_else(|| "how much is 10 USD in INR?".into());
    println!("{}", a2ad::call_agent(&url, &text).await?);
    Ok(())
}
