//! The arguments of a call, by name (pure).

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

use protocol::{
    Json,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

/// The members of the arguments, in their order; of members with the same name the last.
pub(super) struct Arguments<'a> {
    /// `None` if the arguments are not an object.
    members: Option<Members>,
    whole: &'a Json,
}

#[derive(Default)]
struct Members {
    list: Vec<(String, Json)>,
    /// Index in `list`.
    places: HashMap<String, usize>,
}

impl<'a> Arguments<'a> {
    pub(super) fn of(whole: &'a Json) -> Self {
        let object = Node::new(whole.as_raw(), &Path::Root).object();
        let entries =
            object.and_then(|object| object.entries(|name, node| Ok((name.to_owned(), node.any()?))));
        let members = entries.ok().map(|entries| entries.into_iter().fold(Members::default(), Members::with));
        Self { members, whole }
    }

    /// The members that `used` does not contain.
    pub(super) fn unused(&self, used: impl Fn(&str) -> bool) -> Result<Vec<(&str, &Json)>, String> {
        let members = self.members.as_ref().ok_or("arguments: expected an object")?;
        let members = members.list.iter().map(|(name, value)| (name.as_str(), value));
        Ok(members.filter(|(name, _)| !used(name)).collect())
    }

    /// The members that `used` does not contain, as a document; other arguments as they are.
    pub(super) fn document(&self, used: impl Fn(&str) -> bool) -> Vec<u8> {
        let Ok(members) = self.unused(used) else { return self.whole.as_str().into() };
        let mut writer = Writer::new();
        writer.object(|out| {
            for (name, value) in members {
                out.key(name).raw(value.as_str());
            }
        });
        writer.finish()
    }

    /// A string, number or boolean as text; `None` if it is absent or null.
    pub(super) fn scalar(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        match self.get(name) {
            Some(value) if value.as_str().starts_with(['{', '[']) => {
                Err(format!("arguments.{name}: expected a string, a number or a boolean"))
            }
            value => value.map(|value| text(name, value)).transpose(),
        }
    }

    /// Any value as text, objects and arrays as JSON; `None` if it is absent or null.
    pub(super) fn any(&self, name: &str) -> Result<Option<Cow<'_, str>>, String> {
        self.get(name).map(|value| text(name, value)).transpose()
    }

    fn get(&self, name: &str) -> Option<&Json> {
        let members = self.members.as_ref()?;
        let (_, value) = &members.list[*members.places.get(name)?];
        (value.as_str() != "null").then_some(value)
    }
}

impl Members {
    fn with(mut self, (name, value): (String, Json)) -> Self {
        match self.places.entry(name.clone()) {
            Entry::Occupied(place) => self.list[*place.get()].1 = value,
            Entry::Vacant(place) => {
                place.insert(self.list.len());
                self.list.push((name, value));
            }
        }
        self
    }
}

/// The content of a string, else the JSON text.
fn text<'a>(name: &str, value: &'a Json) -> Result<Cow<'a, str>, String> {
    if !value.as_str().starts_with('"') {
        return Ok(value.as_str().into());
    }
    let string = Node::new(value.as_raw(), &Path::Root).string();
    string.map_err(|_| format!("arguments.{name}: expected a string of valid Unicode"))
}
