// Evaluates each role of template.yaml by @cloud-copilot/iam-simulate, independently of proof/iamcheck:
//   node simulate.mjs TEMPLATE FILE...
// Each file has recorded calls. They must be allowed. With another action, kind of item, table, index or secret they
// must be denied, unless that is a recorded call too. Roles are evaluated with the data in their own stack without a
// customer key, and in another stack with one. The key must be allowed through two services only.
import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import { account, Comparison, resolver } from './policy.mjs'

const [templatePath, ...files] = process.argv.slice(2)
const text = parseDocument(readFileSync(templatePath, 'utf8'), { merge: true, logLevel: 'silent' })
const resources = text.get('Resources')
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

const resolve = resolver(text, reference)

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

const comparison = new Comparison('template.yaml')
const keyPolicy = { Version: '2012-10-17', Statement: [{ Effect: 'Allow',
  Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' }] }

for (const conditions of [new Set(['MakesData']), new Set(['HasKmsKey'])]) {
  for (const id of all('function')) {
    const role = resources.getIn([id, 'Properties', 'Role'], true).value.replace(/\.Arn$/, '')
    const [{ PolicyDocument: policy }] = resolve(resources.getIn([role, 'Properties', 'Policies'], true), conditions)
    const judge = (want, call) => comparison.decide(want, nameOf(call), [policy], {
      action: call.action, resource: arn(call.resource),
      contextVariables: call.kind ? { 'dynamodb:LeadingKeys': [call.kind + '#1'] } : {} })
    for (const call of recorded.filter((c) => c.function === id)) {
      await judge('allowed', call)
      for (const other of variants(call)) await judge('denied', other)
    }
    for (const service of ['dynamodb', 'secretsmanager', 's3']) {
      const want = conditions.has('HasKmsKey') && service !== 's3' ? 'allowed' : 'denied'
      await comparison.decide(want, `${id} kms:Decrypt through ${service}`, [policy], { action: 'kms:Decrypt',
        resource: key, contextVariables: { 'kms:ViaService': `${service}.eu-west-1.amazonaws.com` } }, keyPolicy)
    }
  }
}
comparison.report(`${all('function').length} roles`)
