<#list dependencyMap as entry>
${entry.getKey().groupId}:${entry.getKey().artifactId}	${entry.getKey().version}	${entry.getValue()?join("\t")}
</#list>
