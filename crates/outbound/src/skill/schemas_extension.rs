//! The card extension with the schemas of an agent's skills.

use engine::Skill;
use protocol::{Json, json::write::Writer, model::AgentExtension};

/// The extension that shows the schemas of an agent's skills on its card.
pub const SCHEMAS_EXTENSION: &str = "urn:a2ad:ext:skill-schemas:1";

/// Maximum size of all schemas on a card. The number of their values is limited too, as in every [`Json`].
const MAX_BYTES: usize = 1 << 20;

/// The card extension with the schemas of these skills: `{skill: {input, output}}`. `None` if no skill has one. Schemas
/// that do not fit are left out, the largest first, and the extension's description has their number.
pub fn schemas_extension<'a>(skills: impl Iterator<Item = &'a Skill>) -> Option<AgentExtension> {
    let mut all: Vec<&Skill> = skills.filter(|skill| size(skill) > 0).collect();
    if all.is_empty() {
        return None;
    }
    let (count, mut description) =
        (all.len(), "JSON Schemas of the skills' arguments and results".to_owned());
    // One that is too large or too deep by itself must not keep out the others.
    all.retain(|skill| params(&[skill]).is_some());
    all.sort_by_key(|skill| size(skill));
    // Whatever is a part of something that fits, fits.
    let counts: Vec<usize> = (1..=all.len()).collect();
    all.truncate(counts.partition_point(|count| params(&all[..*count]).is_some()));
    if all.len() < count {
        description += &format!(", without the {} largest", count - all.len());
    }
    let uri = SCHEMAS_EXTENSION.into();
    Some(AgentExtension { uri, description: Some(description), required: false, params: params(&all) })
}

/// The size of a skill's schemas, in bytes.
fn size(skill: &Skill) -> usize {
    let schemas = [skill.input_schema(), skill.output_schema()].into_iter().flatten();
    schemas.map(|schema| schema.as_str().len()).sum()
}

/// `None` if it is larger than a value on a card may be.
fn params(skills: &[&Skill]) -> Option<Json> {
    let mut ordered = skills.to_vec();
    ordered.sort_by_key(|skill| skill.id());
    let mut writer = Writer::new();
    writer.object(|out| {
        for skill in ordered {
            out.key(skill.id()).object(|out| {
                for (name, schema) in [("input", skill.input_schema()), ("output", skill.output_schema())] {
                    if let Some(schema) = schema {
                        out.key(name).raw(schema.as_str());
                    }
                }
            });
        }
    });
    let text = String::from_utf8(writer.finish()).ok().filter(|text| text.len() <= MAX_BYTES)?;
    Json::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{AgentResult, DynAgent, Outcome, SkillInput, agent_fn};
    use protocol::model::AgentSkill;

    use super::*;
    use crate::schema::Schema;

    /// A skill whose input schema has so many properties.
    fn skill(id: usize, properties: usize) -> Skill {
        let properties: Vec<String> = (0..properties).map(|name| format!(r#""p{name}":true"#)).collect();
        let schema = format!(r#"{{"properties":{{{}}}}}"#, properties.join(","));
        let schema = Schema::new(Json::parse(&schema).unwrap()).unwrap();
        Skill { input: SkillInput::Arguments(Some(Arc::new(schema))), ..without_schema(id) }
    }

    fn without_schema(id: usize) -> Skill {
        let card = AgentSkill { id: format!("s{id}"), ..AgentSkill::default() };
        Skill::new(card, DynAgent::new(agent_fn(|_| async { AgentResult::Ok(Outcome::done()) })))
    }

    #[test]
    fn largest_schemas_are_left_out_until_the_others_fit() {
        // Together they have more values than one value on a card may have.
        let skills: Vec<Skill> = (0..200).map(|id| skill(id, id)).collect();
        let extension = schemas_extension(skills.iter().rev()).unwrap();
        let shown = extension.params.unwrap();
        let is_shown = |id: usize| shown.as_str().contains(&format!(r#""s{id}":"#));
        let count = (0..200).filter(|id| is_shown(*id)).count();
        assert!((0..count).all(is_shown) && (100..200).contains(&count), "{count}");
        assert!(extension.description.unwrap().ends_with(&format!(", without the {} largest", 200 - count)));
        let one_more: Vec<&Skill> = skills.iter().take(count + 1).collect();
        assert!(params(&one_more).is_none());
    }

    #[test]
    fn schema_that_is_too_large_by_itself_does_not_hide_the_others() {
        // It has as many values as one may have, and the card needs some more around it.
        let largest = 9_998;
        let skills = [skill(0, largest), skill(1, 1)];
        let extension = schemas_extension(skills.iter()).unwrap();
        assert_eq!(extension.params.unwrap().as_str(), r#"{"s1":{"input":{"properties":{"p0":true}}}}"#);
        assert_eq!(schemas_extension(skills[..1].iter()).unwrap().params.unwrap().as_str(), "{}");
        assert!(schemas_extension([&without_schema(3)].into_iter()).is_none());
    }
}
