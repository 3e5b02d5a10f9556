-- What is due is found host by host, so that the backlog of a host that gets no requests is not read.
DROP INDEX webhooks_due;
CREATE INDEX webhooks_due ON webhooks (host, next_at, due_since) WHERE next_at IS NOT NULL;
