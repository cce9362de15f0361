// An editor on the official SDK: plays the steps of a JSON file against one agent process and prints what came of each.
//   node acp_client.mjs STEPS.json     {sdk, command, args, cwd, log, sent, able, permission, steps: [[what, ...], ...]}
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { Readable } from "node:stream";

const play = JSON.parse(readFileSync(process.argv[2], "utf8"));
const acp = await import(play.sdk);
const agent = spawn(play.command, play.args, { cwd: play.cwd, stdio: ["pipe", "pipe", "inherit"] });
agent.stdout.on("data", (bytes) => appendFileSync(play.log, bytes));

const { agent: methods, client: asked } = acp.methods;
const updates = [];
let cancel = null;
let onUpdate = () => {};
const app = acp
  .client({ name: "acp-sdk" })
  .onNotification(asked.session.update, ({ params }) => {
    updates.push(params.update);
    onUpdate(params.update);
  })
  .onRequest(asked.session.requestPermission, ({ params }) => {
    updates.push({ asked: params });
    return { outcome: { outcome: "selected", optionId: play.permission } };
  })
  .onRequest(asked.elicitation.create, ({ params }) => {
    updates.push({ asked: params });
    return { action: "decline" };
  });

const sent = new WritableStream({
  write(bytes) {
    appendFileSync(play.sent, bytes);
    agent.stdin.write(bytes);
  },
});
const stream = acp.ndJsonStream(sent, Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (editor) => {
  let session = play.session;
  for (const [what, value] of play.steps) {
    let result;
    try {
      if (what === "initialize") {
        const hello = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: play.able, clientInfo: { name: "acp-sdk", version: "1" } };
        result = await editor.request(methods.initialize, hello);
      } else if (what === "new") {
        result = await editor.request(methods.session.new, { cwd: play.cwd, mcpServers: [] });
        session = result.sessionId;
      } else if (what === "load") {
        result = await editor.request(methods.session.load, { sessionId: session, cwd: play.cwd, mcpServers: [] });
      } else if (what === "list") {
        result = await editor.request(methods.session.list, {});
      } else if (what === "configure") {
        result = await editor.request(methods.session.setConfigOption, { sessionId: session, configId: "guard", value });
      } else if (what === "prompt") {
        result = await editor.request(methods.session.prompt, { sessionId: session, prompt: [{ type: "text", text: value }] });
      } else if (what === "cancel") {
        // Cancelled as soon as a tool is at work.
        onUpdate = (update) => {
          if (update.status === "in_progress") editor.notify(methods.session.cancel, { sessionId: session });
        };
        result = await editor.request(methods.session.prompt, { sessionId: session, prompt: [{ type: "text", text: value }] });
        onUpdate = () => {};
      }
    } catch (error) {
      result = { error: { code: error.code, message: error.message } };
    }
    process.stdout.write(JSON.stringify({ what, result, updates: updates.splice(0) }) + "\n");
  }
});
agent.stdin.end();
const [code] = await new Promise((done) => agent.once("exit", (...how) => done(how)));
process.stdout.write(JSON.stringify({ what: "exit", result: code }) + "\n");
process.exit(0);
