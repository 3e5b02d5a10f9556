// An agent in TypeScript: asks how many sections a report shall have, then writes it section by section.
// It streams, and goes on after a crash: each section is recorded together with how far it has come.
// Node 22.18 and later, Deno and Bun run it as it is.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const send = (type: string, fields: object) => console.log(JSON.stringify({ type, ...fields }));

function read<T>(variable: string, otherwise: T): T {
  const path = process.env[variable];
  return path ? JSON.parse(readFileSync(path, "utf8")) : otherwise;
}

const topic: string = JSON.parse(readFileSync(0, "utf8")).text;
const sections = parseInt(read("A2AD_CALL_ANSWER", { text: "" }).text);
const written = read("A2AD_CALL_SAVED", 0);

if (Number.isNaN(sections)) {
  send("ask", { text: "How many sections shall the report have?" });
  process.exit();
}

for (let section = written + 1; section <= sections; section++) {
  send("progress", { text: `writing section ${section}` });
  await sleep(300);
  send("artifact", { text: `${topic}, section ${section}\n`, checkpoint: section });
}
