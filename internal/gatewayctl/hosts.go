package gatewayctl

import (
	"slices"
	"time"

	"mobilegateway/shared/merchant"
)

type hostCommands struct {
	Add    hostAdd    `cmd:"" help:"Add hosts."`
	Remove hostRemove `cmd:"" help:"Take hosts away; what was accepted before is still delivered."`
	List   hostList   `cmd:"" help:"List the hosts."`
}

type hostArguments struct {
	merchantArgument
	Hosts         []string `arg:"" name:"host" help:"host, or host:port."`
	AllowLoopback bool     `variable:"ALLOW_LOOPBACK" help:"Accept addresses of this machine: for the local run alone, where it is understood."`
}

// change gives the profile other hosts.
func (c hostArguments) change(s *session, what string, hosts func(old []string) []string) error {
	return changeProfile(s, c.Name, what, func(p *merchant.Profile) error {
		p.NotificationHosts = hosts(p.NotificationHosts)
		p.UpdatedAt = s.Now().UTC().Truncate(time.Millisecond)
		if err := p.Validate(c.AllowLoopback); err != nil {
			return usageError("%w", err)
		}
		return nil
	})
}

type hostAdd struct{ hostArguments }

// Run adds the hosts that the merchant does not have.
func (c *hostAdd) Run(s *session) error {
	return c.change(s, "add notification hosts", func(old []string) []string {
		added := old
		for _, host := range c.Hosts {
			if !slices.Contains(added, host) {
				added = append(added, host)
			}
		}
		return added
	})
}

type hostRemove struct{ hostArguments }

// Run takes the hosts away. The one of the merchant's own notif_url stays until that is changed.
func (c *hostRemove) Run(s *session) error {
	return c.change(s, "remove notification hosts", func(old []string) []string {
		return slices.DeleteFunc(old, func(host string) bool { return slices.Contains(c.Hosts, host) })
	})
}

type hostList struct{ merchantArgument }

// Run lists the hosts.
func (c *hostList) Run(s *session) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	rows := table{{"HOST"}}
	for _, host := range p.NotificationHosts {
		rows = append(rows, []string{host})
	}
	return s.show(nonNil(p.NotificationHosts), rows)
}
