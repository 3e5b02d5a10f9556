-- Callers with client certificates were `mtls:` and a name; now the kind of the name is between: `mtls:dn:` where the name is
-- a subject, in which `=` comes before any `:`, and `mtls:uri:` otherwise. A new name can be the earlier one of another
-- caller (of the URI `dn:…`), so all scopes get a form first that no name has.
UPDATE scopes SET principal = char(1) || CASE
    WHEN instr(substr(principal, 6) || '=', '=') < instr(substr(principal, 6) || ':', ':') THEN 'mtls:dn:'
    ELSE 'mtls:uri:' END || substr(principal, 6)
WHERE principal GLOB 'mtls:*';
UPDATE scopes SET principal = substr(principal, 2) WHERE principal GLOB char(1) || 'mtls:*';

UPDATE dead_letters SET principal = CASE
    WHEN instr(substr(principal, 6) || '=', '=') < instr(substr(principal, 6) || ':', ':') THEN 'mtls:dn:'
    ELSE 'mtls:uri:' END || substr(principal, 6)
WHERE principal GLOB 'mtls:*';
