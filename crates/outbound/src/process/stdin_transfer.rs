//! Sends the standard input of a command to its supervisor, over the connection that is the supervisor's own standard
//! input.
//!
//! A child inherits three streams without any unsafe code, and the supervisor needs four. So one of them is sent as a
//! message (`SCM_RIGHTS`). No descriptor is ever inherited by a child for which it is not meant.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, recvmsg, sendmsg,
    },
};

/// Sends a descriptor. It stays open until the other end has received it.
pub(super) fn send(connection: &UnixStream, stdin: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [stdin];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("the buffer for a descriptor is too small"));
    }
    // A message of a stream needs at least one byte.
    sendmsg(connection, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives the descriptor that the other end has sent first.
pub(super) fn receive(connection: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(connection, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::empty())?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let stdin = received.ok_or_else(|| io::Error::other("no standard input was sent for the command"))?;
    fcntl_setfd(&stdin, FdFlags::CLOEXEC)?;
    Ok(stdin)
}
