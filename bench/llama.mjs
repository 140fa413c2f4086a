// node llama.mjs PACKAGE MODEL.gguf THREADS < {"prompts": [...], "schema": {...}} > {"seconds": [...], "calls": [...]}
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";
const [folder, modelPath, threads] = process.argv.slice(2);
const {getLlama, LlamaCompletion} = await import(pathToFileURL(`${folder}/dist/index.js`));
const {prompts, schema} = JSON.parse(readFileSync(0, "utf8"));
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({contextSize: 2048, threads: Number(threads)});
const grammar = await llama.createGrammarForJsonSchema(schema);
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const seconds = [], calls = [];
for (const prompt of prompts) {
  const began = performance.now();
  calls.push(await completion.generateCompletion(model.tokenize(prompt, true), {grammar, maxTokens: 256, temperature: 0}));
  seconds.push((performance.now() - began) / 1000);
}
console.log(JSON.stringify({seconds, calls}));
process.exit(0);
