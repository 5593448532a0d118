// Evaluates each role of template.yaml by @cloud-copilot/iam-simulate, independently of proof/iamcheck:
//   node simulate.mjs TEMPLATE FILE...
// Each file has recorded calls. They must be allowed. With another action, kind of item, table, index or secret they
// must be denied, unless that is a recorded call too. Roles are evaluated with the data in their own stack without a
// customer key, and in another stack with one. The key must be allowed through two services only.
import { readFileSync } from 'node:fs'
import { runSimulation } from '@cloud-copilot/iam-simulate'
import { isAlias, isMap, isScalar, isSeq, parseDocument } from 'yaml'

const [templatePath, ...files] = process.argv.slice(2)
const text = parseDocument(readFileSync(templatePath, 'utf8'), { merge: true, logLevel: 'silent' })
const resources = text.get('Resources')
const account = '123456789012'
const key = `arn:aws:kms:eu-west-1:${account}:key/11111111-2222-3333-4444-555555555555`
const pseudo = { 'AWS::Partition': 'aws', 'AWS::Region': 'eu-west-1', 'AWS::AccountId': account,
  'AWS::StackName': 'gateway', DataStack: 'gateway-data', KmsKeyArn: key }

// arn returns the ARN of a table or a secret by its logical id, with what follows it: LedgerTable/index/due.
function arn(name) {
  const [id, ...rest] = name.split('/')
  if (id.endsWith('Table')) return [`arn:aws:dynamodb:eu-west-1:${account}:table/${id}`, ...rest].join('/')
  if (id.endsWith('Secret')) return `arn:aws:secretsmanager:eu-west-1:${account}:secret:${id}-AbCdEf`
  throw new Error(`${name} is neither a table nor a secret: add its ARN to arn`)
}

// reference returns the value of !Ref, of !GetAtt or of an import. A table's !Ref is its name, which no policy takes.
function reference(name) {
  if (name in pseudo) return pseudo[name]
  const [, id, attribute] = /^(\w+?)(\.?(?:Stream)?Arn)?$/.exec(name)
  if (id.endsWith('Table') && !attribute) return id
  return arn(attribute?.includes('Stream') ? id + '/stream/2026-01-01T00:00:00.000' : id)
}

const substitute = (value, names) => value.replace(/\$\{([^}]+)\}/g, (_, name) => names[name] ?? reference(name))

// resolve returns the plain value of a node under the conditions that are true. It fails on what it does not know.
function resolve(node, conditions) {
  const inner = (n) => resolve(n, conditions)
  if (isAlias(node)) return inner(node.resolve(text))
  switch (node.tag?.startsWith('!') && !node.tag.startsWith('!!') ? node.tag : '') {
    case '!Ref': return node.value === 'AWS::NoValue' ? undefined : reference(node.value)
    case '!GetAtt': return reference(node.value)
    case '!Sub': return isSeq(node) ? substitute(node.items[0].value, inner(node.items[1])) : substitute(node.value, {})
    case '!If': return inner(node.items[conditions.has(node.items[0].value) ? 1 : 2])
    case '': break
    default: throw new Error(`${node.tag} is not supported in a role`)
  }
  if (isScalar(node)) return node.value
  if (isSeq(node)) return node.items.map(inner).filter((item) => item !== undefined)
  if (!isMap(node)) throw new Error('a node of no known kind')
  const merged = {}
  for (const pair of node.items) {
    const name = pair.key.value
    if (String(name) === '<<' || name?.description === '<<') Object.assign(merged, inner(pair.value))
    else merged[name] = inner(pair.value)
  }
  const imported = merged['Fn::ImportValue']
  return imported ? reference(imported.replace('gateway-data-', '')) : merged
}

const recorded = files.flatMap((name) => JSON.parse(readFileSync(name, 'utf8')))
const nameOf = ({ function: f, action, resource, kind }) => [f, action, resource, kind ?? ''].join(' ').trim()
const known = new Set(recorded.map(nameOf))
const all = (part) => [...new Set(recorded.map((call) => call[part]).filter(Boolean))]
const actions = [...all('action'), 'dynamodb:DeleteItem', 'dynamodb:Scan', 'secretsmanager:PutSecretValue']
const places = [...all('resource'), 'LedgerTable/index/other']
const kinds = [...all('kind'), 'other']

// variants returns the calls that differ from a call in one part.
function variants(call) {
  const service = (name) => name.split(':')[0]
  const secret = (place) => arn(place).includes(':secret:')
  const found = [...actions.filter((a) => service(a) === service(call.action)).map((action) => ({ ...call, action })),
    ...places.filter((p) => secret(p) === secret(call.resource)).map((resource) => ({ ...call, resource }))]
  if (call.kind) found.push(...kinds.map((kind) => ({ ...call, kind })))
  return found.filter((other) => !known.has(nameOf(other)))
}

const counts = { allowed: 0, denied: 0 }
const faults = new Set()

// decide compares the simulator's decision about a request with the wanted one.
async function decide(want, name, policy, request) {
  const principal = `arn:aws:iam::${account}:role/own`
  const scps = [{ orgIdentifier: 'r', policies: [{ name: 'all', policy: {
    Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }] } }] }]
  const result = await runSimulation({ identityPolicies: [{ name: 'own', policy }], resourceControlPolicies: [],
    serviceControlPolicies: scps, request: { principal, ...request, resource: { accountId: account,
      resource: request.resource } }, ...(request.resource === key && { resourcePolicy: { Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*',
        Resource: '*' }] } }) }, {})
  if (result.resultType === 'error') {
    // The action does not apply to the resource, so AWS refuses the request before it evaluates a policy.
    if (want === 'allowed' || result.errors.message !== 'invalid.resource') {
      faults.add(`${name}: ${JSON.stringify(result.errors)}`)
    }
    return
  }
  counts[want]++
  if ((result.overallResult === 'Allowed') !== (want === 'allowed')) {
    faults.add(`${name} is ${result.overallResult}, but must be ${want}: correct the role in template.yaml`)
  }
}

for (const conditions of [new Set(['MakesData']), new Set(['HasKmsKey'])]) {
  for (const id of all('function')) {
    const role = resources.getIn([id, 'Properties', 'Role'], true).value.replace(/\.Arn$/, '')
    const [{ PolicyDocument: policy }] = resolve(resources.getIn([role, 'Properties', 'Policies'], true), conditions)
    const judge = (want, call) => decide(want, nameOf(call), policy, {
      action: call.action, resource: arn(call.resource),
      contextVariables: call.kind ? { 'dynamodb:LeadingKeys': [call.kind + '#1'] } : {} })
    for (const call of recorded.filter((c) => c.function === id)) {
      await judge('allowed', call)
      for (const other of variants(call)) await judge('denied', other)
    }
    for (const service of ['dynamodb', 'secretsmanager', 's3']) {
      const want = conditions.has('HasKmsKey') && service !== 's3' ? 'allowed' : 'denied'
      await decide(want, `${id} kms:Decrypt through ${service}`, policy, { action: 'kms:Decrypt', resource: key,
        contextVariables: { 'kms:ViaService': `${service}.eu-west-1.amazonaws.com` } })
    }
  }
}
for (const fault of faults) console.error(fault)
const roleCount = all('function').length
const expected = `must be allowed: ${counts.allowed}, denied: ${counts.denied}`
console.log(`${roleCount} roles, requests that ${expected}; faults: ${faults.size}`)
process.exitCode = faults.size > 0 ? 1 : 0
