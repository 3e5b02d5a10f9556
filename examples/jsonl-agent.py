#!/usr/bin/env python3
"""A command skill with protocol = "jsonl": asks for a title, then writes a report section by section.

It streams, and goes on after a crash: each section and how far it has come are recorded together.
"""
import json, os, sys, time

def send(type, **fields):
    print(json.dumps({"type": type, **fields}), flush=True)

def read(variable):
    path = os.environ.get(variable)
    return json.load(open(path)) if path else None

arguments = json.load(sys.stdin)
answer = read("A2AD_CALL_ANSWER")
saved = read("A2AD_CALL_SAVED") or {"written": 0}

if answer is None:
    send("ask", text="Which title shall the report have?")
    sys.exit()

for section in range(saved["written"] + 1, arguments["sections"] + 1):
    send("progress", text=f"writing section {section}")
    time.sleep(arguments.get("seconds", 0))
    send("artifact", text=f"{answer['text']}, section {section}\n", checkpoint={"written": section})
