//! The files of a store: which process may use them, how they are opened, copied and kept small.

pub(super) mod backup;
pub(super) mod checkpoint;
pub(super) mod file_lock;
pub(super) mod free_space;
pub(super) mod instance;
pub(super) mod key_folder;
pub(super) mod log_header;
pub(super) mod open;
pub(super) mod probe;
pub(super) mod store_files;
