//! What the engine needs of the JSON Schemas of arguments and results. Validators are elsewhere.

use futures_util::future::BoxFuture;
use protocol::Json;

/// A JSON Schema of a skill's arguments or result.
pub trait SkillSchema: Send + Sync {
    /// The schema as it is shown.
    fn text(&self) -> &Json;

    /// The names of the required properties.
    fn required(&self) -> &[String];

    /// The property that a plain text stands for: the only required one, if it is a string.
    fn single_text(&self) -> Option<&str>;

    /// Whether it says what members an object has. One that does not allows the data of any message.
    fn has_properties(&self) -> bool {
        true
    }

    /// Whether a value is allowed. `steps` is how much checks may still cost, and what the check has cost is taken from it;
    /// a step is one subschema on one value. `None`: that is not enough to tell.
    fn allows(&self, value: &Json, steps: &mut u64) -> Option<bool>;

    /// Checks a value. The error names the first field that is wrong and what was expected; `root` is how the value itself is
    /// called.
    fn check(&self, root: &'static str, value: &Json) -> SchemaCheck;

    /// Like [`check`](Self::check), for JSON that may be larger than [`Json`] allows.
    fn check_text(&self, root: &'static str, text: &str) -> SchemaCheck;
}

/// A check of a value against a schema.
pub enum SchemaCheck {
    /// It is done.
    Done(Result<(), String>),
    /// It is too large for the thread of its caller.
    Large(LargeCheck),
}

/// A large check: the first future resolves when there is a place for it, the second with the result.
pub type LargeCheck = BoxFuture<'static, BoxFuture<'static, Result<(), String>>>;

/// A schema that is only shown: the system behind the skill checks what it gets.
pub struct DeclaredSchema(pub Json);

impl SkillSchema for DeclaredSchema {
    fn text(&self) -> &Json {
        &self.0
    }

    fn required(&self) -> &[String] {
        &[]
    }

    fn single_text(&self) -> Option<&str> {
        None
    }

    fn allows(&self, _value: &Json, _steps: &mut u64) -> Option<bool> {
        Some(true)
    }

    fn check(&self, _root: &'static str, _value: &Json) -> SchemaCheck {
        SchemaCheck::Done(Ok(()))
    }

    fn check_text(&self, _root: &'static str, _text: &str) -> SchemaCheck {
        SchemaCheck::Done(Ok(()))
    }
}
