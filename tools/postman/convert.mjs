// Makes docs/postman/gateway.postman_collection.json from docs/openapi.yaml by openapi-to-postmanv2:
//   node convert.mjs TOOLS CONTRACT COLLECTION
// TOOLS is the folder with node_modules. The same contract gives the same bytes.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [tools, contract, collection] = process.argv.slice(2);
const { convert } = createRequire(`${tools}/`)("openapi-to-postmanv2");

// Values of the contract's examples, and the variables that replace them. The longest of two that overlap comes first.
const variables = [
  ["DemoShop_1001", "{{merchant}}_{{order}}"],
  ["c-1001", "charge-{{order}}"], ["REF-1001", "REF-{{order}}"], ["s-1001", "sms-{{order}}"],
  ["https://shop.example.com/receipts", "{{notifyUrl}}"], ["SERVICE-1", "{{serviceId}}"], ["DemoShop", "{{merchant}}"], ["\"DEMO\"", "\"{{onBehalfOf}}\""],
  ["\"onBehalfOf\": \"{{merchant}}\"", "\"onBehalfOf\": \"{{onBehalfOf}}\""],
];
const headers = {
  "gw-token": "{{gwToken}}", "gw-alias": "{{gwAlias}}", "X-Operator-ISE2": "{{gwAlias}}",
  "X-OAPI-Application-Id": "{{applicationId}}", "X-OAPI-Contact-Id": "{{contactId}}",
};
const parameters = {
  transactionId: "{{transactionId}}", requestId: "{{requestId}}", orderId: "{{merchant}}_{{order}}",
  webhookId: "{{webhookId}}",
};
const queries = { clientCorrelator: "charge-{{order}}" }; // all other query parameters are left out
const names = ["baseUrl", "accessToken", "clientId", "clientSecret", "merchant", "onBehalfOf", "serviceId",
  "applicationId", "contactId", "gwToken", "gwAlias", "notifyUrl", "order", "transactionId",
  "requestId", "webhookId"];

const description = `Made from docs/openapi.yaml by make postman.

1. Set the variables of the collection to the values of your onboarding.
2. Send the requests from the top to the bottom.

The variable order is part of each key. It is set at the first request and stays, so that a request that you send again
is a retry. Never change it after a 504 or a 404: they do not show that nothing happened. Clear it for a new order.`;

const script = (listen, ...exec) => ({ listen, script: { type: "text/javascript", exec } });
const success = [
  "pm.test('the response is a success', () => pm.expect(pm.response.code).to.be.oneOf([200, 201, 202]));",
  "const body = pm.response.code < 300 ? pm.response.json() : {};",
  "const charged = body.amountTransaction?.serverReferenceCode;",
  "if (charged) pm.collectionVariables.set('transactionId', charged);",
  "const sent = body.outboundSMSMessageRequest?.resourceURL?.split('/').at(-2);",
  "if (sent) pm.collectionVariables.set('requestId', sent);",
  "const hooks = body.transactions?.flatMap((row) => row.notifications).filter((hook) => hook.state === 'delivered' &&",
  "  hook.status === 'DeliveredToTerminal'); // after any other status of an SMS a later one waits",
  "if (hooks?.length) pm.collectionVariables.set('webhookId', hooks[0].webhook_id);",
  "const lists = Number(pm.variables.get('lists') ?? 0) + 1; // the SMS is received after a second",
  "if (hooks && !hooks.length && lists < 500) {",
  "  pm.variables.set('lists', lists);",
  "  pm.execution.setNextRequest(pm.info.requestName);",
  "}",
];

function replaceValues(text) {
  for (const [value, variable] of variables) text = text.replaceAll(value, variable);
  return text;
}

// clean removes what differs from run to run, and puts the variables in.
function clean(item) {
  delete item.id;
  delete item.response;
  for (const child of item.item ?? []) clean(child);
  if (!item.request) return;
  item.event = [];
  const { header, body, url, auth } = item.request;
  for (const field of header) field.value = headers[field.key] ?? field.value;
  for (const field of url.query ?? []) {
    const value = queries[field.key] ?? ""; // the converter invents a value, and cuts it at a random length
    Object.assign(field, { value, disabled: !value });
  }
  for (const variable of url.variable) variable.value = parameters[variable.key] ?? variable.value;
  if (body?.raw) body.raw = replaceValues(body.raw);
  for (const field of body?.urlencoded ?? []) {
    if (field.key === "grant_type") Object.assign(field, { value: "client_credentials", disabled: false });
  }
  for (const field of auth?.basic ?? []) {
    field.value = field.key === "username" ? "{{clientId}}" : "{{clientSecret}}";
  }
}

const options = {
  folderStrategy: "Tags", requestParametersResolution: "Example", exampleParametersResolution: "Example",
  enableOptionalParameters: false,
};
convert({ type: "string", data: readFileSync(contract, "utf8") }, options, (fault, result) => {
  if (fault || !result.result) throw fault ?? new Error(result.reason);
  const made = result.output[0].data;
  made.item = made.item.filter(({ name }) => name !== "Operator callbacks");
  clean(made);
  const { name, schema } = made.info;
  made.info = { name, description, schema };
  made.auth = { type: "bearer", bearer: [{ key: "token", value: "{{accessToken}}", type: "string" }] };
  made.variable = names.map((key) => ({ key, value: "" }));
  made.event = [
    script("prerequest", "if (!pm.variables.get('order')) pm.collectionVariables.set('order', String(Date.now()));"),
    script("test", ...success),
  ];
  writeFileSync(collection, JSON.stringify(made, null, 2) + "\n");
});
