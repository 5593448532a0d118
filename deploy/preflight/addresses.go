package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/acm"
	acmtypes "github.com/aws/aws-sdk-go-v2/service/acm/types"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
)

// minCertificateLifetime is the least remaining lifetime of a certificate. ACM renews its own 60 days before they
// expire.
const minCertificateLifetime = 14 * 24 * time.Hour

// domains checks both domains and their certificates.
func (c *checker) domains(ctx context.Context) []Finding {
	var findings []Finding
	for _, d := range []struct{ name, certificate, truststore string }{
		{"DomainName", "CertificateArn", ""}, {"OperatorDomainName", "OperatorCertificateArn", "OperatorTruststoreUri"},
	} {
		domain := c.effective[d.name]
		if domain == "" {
			continue
		}
		findings = append(findings, c.domain(ctx, d.name, domain)...)
		arn := c.effective[d.certificate]
		switch {
		case arn == "":
			findings = append(findings, Finding{d.certificate, d.name + " has no certificate", "give " +
				d.certificate, true})
		case c.effective[d.truststore] != "" && c.effective["StageAddress"] != "closed":
			findings = append(findings, Finding{d.truststore, "an API with an open address excludes mutual TLS",
				"give StageAddress=closed, or leave " + d.truststore + " empty", true})
		default:
			findings = append(findings, c.certificate(ctx, d.certificate, arn, domain)...)
		}
	}
	return findings
}

// domain refuses a domain that API Gateway has already for something else: the stack cannot make it then.
func (c *checker) domain(ctx context.Context, parameter, domain string) []Finding {
	_, err := c.gateway.GetDomainName(ctx, &apigateway.GetDomainNameInput{DomainName: aws.String(domain)})
	if isCode(err, "NotFoundException") {
		return []Finding{{Check: parameter}}
	}
	if err != nil {
		return unchecked(parameter, "apigateway:GET on /domainnames/*", err)
	}
	owner, err := c.ownerOf(ctx, domain)
	switch {
	case err != nil:
		return unchecked(parameter, "cloudformation:DescribeStackResources", err)
	case owner == c.Stack:
		return []Finding{{Check: parameter}}
	case owner == "":
		owner = "no stack"
	}
	return []Finding{{parameter, fmt.Sprintf("API Gateway has the domain %s already, of %s", domain, owner),
		"remove it there first, or choose another domain", true}}
}

// certificate checks that a certificate is here, issued, valid for some time, and for the domain.
func (c *checker) certificate(ctx context.Context, parameter, arn, domain string) []Finding {
	refuse := func(problem, action string) []Finding { return []Finding{{parameter, problem, action, true}} }
	if problem := c.elsewhere(arn); problem != "" {
		return refuse(problem, "request or import the certificate in "+c.Region)
	}
	found, err := c.certificates.DescribeCertificate(ctx,
		&acm.DescribeCertificateInput{CertificateArn: aws.String(arn)})
	if isCode(err, "ResourceNotFoundException") {
		return refuse("there is no certificate "+arn, "copy the ARN from ACM in "+c.Region)
	}
	if err != nil || found.Certificate == nil {
		return unchecked(parameter, "acm:DescribeCertificate", err)
	}
	certificate := found.Certificate
	names := append([]string{aws.ToString(certificate.DomainName)}, certificate.SubjectAlternativeNames...)
	covers := slices.ContainsFunc(names, func(name string) bool { return covers(name, domain) })
	switch {
	case certificate.Status != acmtypes.CertificateStatusIssued:
		return refuse("the certificate is "+string(certificate.Status),
			"add its validation record to the DNS, and wait "+
				"until ACM has issued it")
	case !covers:
		return refuse("the certificate is for "+strings.Join(names, ", ")+", not for "+domain, "request one for "+
			domain)
	case certificate.NotAfter != nil && certificate.NotAfter.Sub(c.now) < minCertificateLifetime:
		return refuse("the certificate ends at "+certificate.NotAfter.UTC().Format(time.DateOnly),
			"renew it: see its renewal status in ACM")
	case parameter == "OperatorCertificateArn" && c.effective["OperatorTruststoreUri"] != "" &&
		certificate.Type != acmtypes.CertificateTypeAmazonIssued:
		return refuse("a domain with mutual TLS takes only a certificate that ACM issued, not an imported one",
			"request one in ACM")
	}
	return []Finding{{Check: parameter}}
}

// covers reports whether a name of a certificate is for a domain.
func covers(name, domain string) bool {
	suffix, isWildcard := strings.CutPrefix(name, "*")
	host, _, _ := strings.Cut(domain, ".")
	return strings.EqualFold(name, domain) || isWildcard && strings.EqualFold(host+suffix, domain)
}

// elsewhere returns why a resource is not in the account and region of the stack, "" if it is.
func (c *checker) elsewhere(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	switch {
	case len(parts) < 6:
		return arn + " is not an ARN"
	case parts[3] != c.Region:
		return fmt.Sprintf("it is in the region %s, and the stack in %s", parts[3], c.Region)
	case parts[4] != c.Account:
		return fmt.Sprintf("it is in the account %s, and the stack in %s", parts[4], c.Account)
	}
	return ""
}

// webACL checks the region of the web ACL. A stage takes a regional one of its own region.
func (c *checker) webACL(context.Context) []Finding {
	const check = "WebAclArn"
	arn := c.effective[check]
	if arn == "" {
		return nil
	}
	if problem := c.elsewhere(arn); problem != "" {
		return []Finding{{check, problem, "deploy deploy/waf.yaml there: make deploy with WAF=1", true}}
	}
	return []Finding{{Check: check}}
}
