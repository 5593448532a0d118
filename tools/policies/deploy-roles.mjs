// Evaluates the roles that a deployment uses, by @cloud-copilot/iam-simulate:
//   node deploy-roles.mjs FOLDER CALLS
// FOLDER is deploy/. CALLS are the recorded calls of make deploy, rollback and abort (deploy's TestDeployCalls). The
// role of pipeline.yaml must be allowed each. With another stack, region, action or condition it must be denied. The
// role of account.yaml is for API Gateway only. That of sandbox.yaml reads its own program, tokens and address.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { account, Comparison, resolver } from './policy.mjs'

const [folder, callsPath] = process.argv.slice(2)
const stack = 'mobile-gateway-staging'
const provider = `arn:aws:iam::${account}:oidc-provider/token.actions.githubusercontent.com`
const values = { 'AWS::Partition': 'aws', 'AWS::Region': 'eu-west-1', 'AWS::AccountId': account, GatewayStack: stack,
  BundleBucket: 'bundles', Repository: 'owner/name', Environment: 'staging', Provider: provider, 'AWS::StackName':
  'sandbox', ArtifactBucket: 'artifacts', ArtifactKey: 'release/1', Volume: 'vol-1a2b' }
const secret = (name) => `arn:aws:secretsmanager:eu-west-1:${account}:secret:${name}-AbCdEf`
const secrets = { Tokens: 'sandbox/tokens', ControlTokens: 'sandbox/control-tokens', TestsTokens:
  'sandbox/tests-tokens' }

// open returns a function that reads a value of a template by its path.
function open(name) {
  const text = parseDocument(readFileSync(join(folder, name), 'utf8'), { merge: true, logLevel: 'silent' })
  const resolve = resolver(text, (id) => secrets[id] ? secret(secrets[id]) : values[id] ?? id)
  return (...path) => resolve(text.getIn(['Resources', ...path], true), new Set(['MakesProvider']))
}

// checkTrust checks that only one service may assume a role.
async function checkTrust(comparison, trust, service) {
  for (const other of ['apigateway', 'ec2', 'lambda']) {
    await comparison.decide(other === service ? 'allowed' : 'denied', `sts:AssumeRole by ${other}`, [], { principal:
      `${other}.amazonaws.com`, action: 'sts:AssumeRole', resource: `arn:aws:iam::${account}:role/own` }, trust)
  }
}

const forbidden = { cloudformation: ['DeleteStack'], s3: ['DeleteObject', 'PutBucketPolicy', 'DeleteBucket'],
  dynamodb: ['DeleteTable', 'GetItem', 'PutItem', 'UpdateItem', 'Scan'],
  logs: ['DeleteLogGroup', 'GetLogEvents', 'FilterLogEvents'],
  secretsmanager: ['DeleteSecret', 'GetSecretValue', 'PutSecretValue'], lambda: ['InvokeFunction',
    'CreateFunctionUrlConfig'], iam: ['PutRolePermissionsBoundary', 'PassRole'], cloudwatch: ['SetAlarmState'] }

const pipeline = open('pipeline.yaml')
const policies = ['StackPolicy', 'ServicePolicy', 'RolePolicy'].map((id) => pipeline(id, 'Properties',
  'PolicyDocument'))
const comparison = new Comparison('deploy/pipeline.yaml')
const calls = JSON.parse(readFileSync(callsPath, 'utf8'))
for (const { action, resource, context = {} } of calls) {
  const decide = (want, request, why) => comparison.decide(want,
    [request.action, request.resource, why].join(' ').trim(), policies, { contextVariables: context, ...request })
  await decide('allowed', { action, resource }, '')
  for (const [own, other] of [[stack, 'mobile-gateway-other'], ['bundles', 'other'], [':eu-west-1:', ':us-east-1:']]) {
    if (resource.includes(own)) await decide('denied', { action, resource: resource.replaceAll(own, other) }, '')
  }
  const [service] = action.split(':')
  for (const name of forbidden[service] ?? []) await decide('denied', { action: `${service}:${name}`, resource,
    contextVariables: {} }, 'without a condition')
  for (const [key, other] of [['iam:PassedToService', 'ec2.amazonaws.com'],
    ['iam:PolicyARN', 'arn:aws:iam::aws:policy/AdministratorAccess'],
    ['lambda:FunctionArn', `arn:aws:lambda:eu-west-1:${account}:function:mobile-gateway-other-PayFunction`]]) {
    if (context[key]) await decide('denied', { action, resource, contextVariables: { [key]: other } }, other)
  }
}
comparison.report('the role of deploy/pipeline.yaml')

const log = new Comparison('deploy/account.yaml')
const logRole = open('account.yaml')
await checkTrust(log, logRole('LogRole', 'Properties', 'AssumeRolePolicyDocument'), 'apigateway')
const managed = logRole('LogRole', 'Properties', 'ManagedPolicyArns')
if (String(managed) !== 'arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs') {
  log.faults.add(`LogRole has ${managed}: API Gateway takes AWS's own policy for its logs`)
}
log.report('the role of deploy/account.yaml')

const sandbox = open('sandbox.yaml')
const machine = new Comparison('deploy/sandbox.yaml')
await checkTrust(machine, sandbox('Role', 'Properties', 'AssumeRolePolicyDocument'), 'ec2')
const [{ PolicyDocument: own }] = sandbox('Role', 'Properties', 'Policies')
const tagged = { 'aws:ResourceTag/Name': 'sandbox' }
const volume = `arn:aws:ec2:eu-west-1:${account}:volume/vol-1a2b`
for (const [want, action, resource, contextVariables = {}] of [
  ['allowed', 's3:GetObject', 'arn:aws:s3:::artifacts/release/1'],
  ['denied', 's3:GetObject', 'arn:aws:s3:::artifacts/release/2'],
  ['denied', 's3:GetObject', 'arn:aws:s3:::other/release/1'],
  ['denied', 's3:PutObject', 'arn:aws:s3:::artifacts/release/1'],
  ...Object.values(secrets).flatMap((name) => [['allowed', 'secretsmanager:GetSecretValue', secret(name)],
    ['denied', 'secretsmanager:PutSecretValue', secret(name)]]),
  ['denied', 'secretsmanager:GetSecretValue', secret(`${stack}/operators`)],
  ['allowed', 'ssm:GetParameter', `arn:aws:ssm:eu-west-1:${account}:parameter/sandbox/base-url`],
  ['denied', 'ssm:GetParameter', `arn:aws:ssm:eu-west-1:${account}:parameter/other/base-url`],
  ['denied', 'ssm:PutParameter', `arn:aws:ssm:eu-west-1:${account}:parameter/sandbox/base-url`],
  ['allowed', 'ec2:AttachVolume', volume, tagged],
  ['denied', 'ec2:AttachVolume', volume.replace('1a2b', '3c4d'), tagged],
  ['denied', 'ec2:AttachVolume', volume, { 'aws:ResourceTag/Name': 'other' }],
  ['denied', 'ec2:DetachVolume', volume, tagged],
]) await machine.decide(want, `${action} ${resource}`, [own], { action, resource, contextVariables })
machine.report('the role of deploy/sandbox.yaml')
