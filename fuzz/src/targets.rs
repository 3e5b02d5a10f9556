//! The fuzz targets, one file each.

pub(crate) mod card;
pub(crate) mod cfg;
pub(crate) mod cursor;
pub(crate) mod json;
pub(crate) mod jwt;
pub(crate) mod legacy;
pub(crate) mod mcp;
pub(crate) mod pb;
pub(crate) mod rest;
pub(crate) mod sm;
pub(crate) mod tmpl;
pub(crate) mod url;
