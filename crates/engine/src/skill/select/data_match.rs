//! Selects a skill by the data part of a message: the only one whose input schema allows it.

use std::{collections::HashSet, sync::Arc};

use protocol::{
    Content, Json, Message,
    json::read::{Node, Path},
};

use crate::skill::{Skill, SkillSchema};

/// The most schemas that a data part is validated with.
const MAX_CANDIDATES: usize = 100;
/// The most bytes that are validated: the size of the data part for each schema after the first.
const MAX_VALIDATED: usize = 16 << 20;
/// What all checks together may cost, in steps of [`SkillSchema::allows`]: some milliseconds.
const MAX_STEPS: u64 = 100_000;

/// The only skill whose schema allows the data part of a message. Only schemas whose required properties are there are
/// validated. If they are too many, the data does not decide: a schema is compiled when it is first used, and keeps
/// that form, which is large. Nor does it decide when the checks together cost more than [`MAX_STEPS`].
pub(super) fn only_match<'a>(
    message: &Message,
    skills: impl Iterator<Item = &'a Arc<Skill>>,
) -> Option<&'a Arc<Skill>> {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    })?;
    let names = property_names(data);
    let schemas = skills.filter_map(|skill| Some((skill, skill.input.schema()?)));
    let is_candidate = |schema: &dyn SkillSchema| schema.required().iter().all(|name| names.contains(name));
    let candidates = schemas.filter(|(_, schema)| is_candidate(*schema));
    let max = MAX_CANDIDATES.min(1 + MAX_VALIDATED / data.as_str().len());
    let candidates: Vec<_> = candidates.take(max + 1).collect();
    if candidates.len() > max {
        return None;
    }
    let mut only = None;
    let mut steps = MAX_STEPS;
    for (skill, schema) in candidates {
        if schema.allows(data, &mut steps)? && only.replace(skill).is_some() {
            return None;
        }
    }
    only
}

/// The names in an object; none of another value.
fn property_names(data: &Json) -> HashSet<String> {
    let object = Node::new(data.as_raw(), &Path::Root).object();
    let names = object.and_then(|object| object.entries(|name, _| Ok(name.to_owned())));
    names.unwrap_or_default().into_iter().collect()
}
