// The official client for JavaScript: requests as JSON on standard input, what came back as JSON on standard output.
import { text } from "node:stream/consumers";
import OpenAI from "openai";

const { baseURL, requests } = JSON.parse(await text(process.stdin));
const client = new OpenAI({ baseURL, apiKey: "any", maxRetries: 0 });

async function streamed(chunks) {
  let said = "", reason = null, sources = null, usage = null;
  for await (const chunk of chunks) {
    const choice = chunk.choices[0];
    said += choice?.delta?.content ?? "";
    reason = choice?.finish_reason ?? reason;
    sources = chunk.sources ?? sources;
    usage = chunk.usage ?? usage;
  }
  return { text: said, reason, sources, usage: usage?.total_tokens ?? null };
}

async function asked(request) {
  try {
    if (request.input) {
      const response = await client.responses.create(request);
      return { text: response.output_text, annotations: response.output[0].content[0].annotations };
    }
    const answer = await client.chat.completions.create(request);
    if (request.stream) return await streamed(answer);
    const { message, finish_reason } = answer.choices[0];
    return { text: message.content, reason: finish_reason, sources: answer.sources, usage: answer.usage.total_tokens };
  } catch (error) {
    return { error: error.constructor.name, status: error.status ?? null, param: error.param, message: error.message };
  }
}

const answers = [];
for (const request of requests) answers.push(await asked(request));
console.log(JSON.stringify(answers));
