package gatewayctl

import (
	"slices"

	"mobilegateway/shared/merchant"
)

type hostCommands struct {
	Add    hostAdd    `cmd:"" help:"Add hosts."`
	Remove hostRemove `cmd:"" help:"Remove hosts. Requests that were accepted before are still notified."`
	List   hostList   `cmd:"" help:"List the hosts."`
}

type hostArguments struct {
	merchantArgument
	Hosts []string `arg:"" name:"host" help:"host, or host:port."`
	loopbackFlag
}

// loopbackFlag allows addresses of this machine in a profile.
type loopbackFlag struct {
	AllowLoopback bool `variable:"ALLOW_LOOPBACK" help:"Accept addresses of this machine; set by --local."`
}

// replaceHosts stores the profile with other hosts.
func (c hostArguments) replaceHosts(s *session, p *merchant.Profile, what string, hosts []string) error {
	return changeProfile(s, p, what, func() error {
		p.NotificationHosts = hosts
		if err := p.Validate(c.AllowLoopback); err != nil {
			return usageError("%w", err)
		}
		return nil
	})
}

type hostAdd struct{ hostArguments }

// Run adds the hosts that the profile does not have.
func (c *hostAdd) Run(s *session, p *merchant.Profile) error {
	hosts := p.NotificationHosts
	for _, host := range c.Hosts {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return c.replaceHosts(s, p, "add notification hosts", hosts)
}

type hostRemove struct{ hostArguments }

// Run removes the hosts. It refuses the host of the merchant's own notif_url: change the URL first.
func (c *hostRemove) Run(s *session, p *merchant.Profile) error {
	hosts := slices.DeleteFunc(slices.Clone(p.NotificationHosts), func(host string) bool {
		return slices.Contains(c.Hosts, host)
	})
	return c.replaceHosts(s, p, "remove notification hosts", hosts)
}

type hostList struct{ merchantArgument }

// Run lists the hosts.
func (c *hostList) Run(s *session, p *merchant.Profile) error {
	rows := mapAll(p.NotificationHosts, func(host string) []string { return []string{host} })
	return s.show(nonNil(p.NotificationHosts), append(table{{"HOST"}}, rows...))
}
