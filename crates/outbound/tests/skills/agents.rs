//! Tests of the built-in agents through an engine, one file per agent.

mod common;

mod approver;
mod currency;
mod demo;
mod echo;
mod other_agents;
mod routing;
mod slow_writer;
mod tck;
