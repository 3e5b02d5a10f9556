//! The schemas of a skill.

use protocol::Json;

/// The JSON Schemas of a skill's arguments and result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSchemas {
    /// What the arguments must be; `None`: the skill takes any message.
    pub input: Option<Json>,
    /// What a data part of the result is; `None`: not declared.
    pub output: Option<Json>,
}

impl SkillSchemas {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }
}
