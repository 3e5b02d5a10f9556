#!/usr/bin/env python3
"""An agent in Python: asks how many sections a report shall have, then writes it section by section.

It streams, and goes on after a crash: each section is recorded together with how far it has come.
"""
import json, os, sys, time

def send(type, **fields):
    print(json.dumps({"type": type, **fields}), flush=True)

def read(variable, default):
    path = os.environ.get(variable)
    return json.load(open(path)) if path else default

topic = json.load(sys.stdin)["text"]
sections = read("A2AD_CALL_ANSWER", {"text": ""})["text"].strip()
written = read("A2AD_CALL_SAVED", 0)

if not sections.isdecimal():
    send("ask", text="How many sections shall the report have?")
    sys.exit()

for section in range(written + 1, int(sections) + 1):
    send("progress", text=f"writing section {section}")
    time.sleep(0.3)
    send("artifact", text=f"{topic}, section {section}\n", checkpoint=section)
