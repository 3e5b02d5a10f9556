#!/bin/sh
# Runs rustc so that the server replies before it commits. Cargo starts it as the wrapper of the crates of this workspace
# (RUSTC_WORKSPACE_WRAPPER), so that their dependencies are not compiled again.
exec "$@" --cfg 'a2ad_control="early_reply"'
