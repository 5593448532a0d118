// The parts of an evaluation by @cloud-copilot/iam-simulate: a template's nodes as plain values, and one request.
import { runSimulation } from '@cloud-copilot/iam-simulate'
import { isAlias, isMap, isScalar, isSeq } from 'yaml'

export const account = '123456789012'

// resolver returns the function that makes the plain value of a node of a document under the conditions that are true.
// reference returns the value of a name. The function fails on what it does not know.
export function resolver(text, reference) {
  const substitute = (value, names) => value.replace(/\$\{([^}]+)\}/g, (_, name) => names[name] ?? reference(name))
  return function resolve(node, conditions) {
    const inner = (n) => resolve(n, conditions)
    if (isAlias(node)) return inner(node.resolve(text))
    switch (node.tag?.startsWith('!') && !node.tag.startsWith('!!') ? node.tag : '') {
      case '!Ref': return node.value === 'AWS::NoValue' ? undefined : reference(node.value)
      case '!GetAtt': return reference(node.value)
      case '!Sub': return isSeq(node) ? substitute(node.items[0].value, inner(node.items[1]))
        : substitute(node.value, {})
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
      // IAM's names of keys may have a parameter.
      else merged[String(name)] = inner(pair.value)
    }
    const imported = merged['Fn::ImportValue']
    return imported ? reference(imported.replace('gateway-data-', '')) : merged
  }
}

// Comparison compares the simulator's decisions about requests with the wanted ones, and counts them.
export class Comparison {
  counts = { allowed: 0, denied: 0 }
  faults = new Set()

  constructor(place) { this.place = place }

  // decide decides about a request by the identity's policies, and by that of the resource if there is one.
  async decide(want, name, policies, request, resourcePolicy) {
    const { principal = `arn:aws:iam::${account}:role/own`, action, resource, contextVariables = {} } = request
    const scps = [{ orgIdentifier: 'r', policies: [{ name: 'all', policy: {
      Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action: '*', Resource: '*' }] } }] }]
    const result = await runSimulation({ identityPolicies: policies.map((policy, i) => ({ name: `own${i}`, policy })),
      resourceControlPolicies: [], serviceControlPolicies: scps, ...(resourcePolicy && { resourcePolicy }),
      request: { principal, action, contextVariables, resource: { accountId: account, resource } } }, {})
    if (result.resultType === 'error') {
      // The action does not apply to the resource, so AWS refuses the request before it evaluates a policy.
      const refusals = ['invalid.resource', 'no.resource.types', 'must.use.wildcard']
      if (want === 'allowed' || !refusals.includes(result.errors.message)) {
        this.faults.add(`${name}: ${JSON.stringify(result.errors)}`)
      }
      return
    }
    this.counts[want]++
    if ((result.overallResult === 'Allowed') !== (want === 'allowed')) {
      this.faults.add(`${name} is ${result.overallResult}, but must be ${want}: correct the role in ${this.place}`)
    }
  }

  // report prints the faults and the counts, and sets the exit code of the program.
  report(roles) {
    for (const fault of this.faults) console.error(fault)
    const { allowed, denied } = this.counts
    console.log(`${roles}, requests that must be allowed: ${allowed}, denied: ${denied}; faults: ${this.faults.size}`)
    if (this.faults.size > 0) process.exitCode = 1
  }
}
