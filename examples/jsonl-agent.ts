// A command skill with protocol = "jsonl": asks for a title, then writes a report section by section.
// It streams, and goes on after a crash: each section and how far it has come are recorded together.
// Node 22.18 and later, Deno and Bun run it as it is.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

type Arguments = { sections: number; seconds?: number };
type Saved = { written: number };

const send = (type: string, fields: object) => console.log(JSON.stringify({ type, ...fields }));

const read = (variable: string) => {
  const path = process.env[variable];
  return path ? JSON.parse(readFileSync(path, "utf8")) : null;
};

const { sections, seconds = 0 }: Arguments = JSON.parse(readFileSync(0, "utf8"));
const answer = read("A2AD_CALL_ANSWER");
const saved: Saved = read("A2AD_CALL_SAVED") ?? { written: 0 };

if (answer === null) {
  send("ask", { text: "Which title shall the report have?" });
  process.exit();
}

for (let section = saved.written + 1; section <= sections; section++) {
  send("progress", { text: `writing section ${section}` });
  await sleep(seconds * 1000);
  send("artifact", { text: `${answer.text}, section ${section}\n`, checkpoint: { written: section } });
}
