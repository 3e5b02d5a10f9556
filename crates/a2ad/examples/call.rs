//! Calls a remote agent in whichever protocol generation its card offers:
//! `cargo run --example call -- http://127.0.0.1:4242 'how much is 10 USD in INR?'`

use std::error::Error;

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the program prints the reply")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:4242".into());
    let text = arguments.next().unwrap_or_else(|| "how much is 10 USD in INR?".into());
    println!("{}", a2ad::call_agent(&url, &text).await?);
    Ok(())
}
