package control

import "strings"

// External completes the configuration of an external cluster by etcdctl's variables, which
// sites that have one set already: ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY name files,
// ETCDCTL_USER and ETCDCTL_PASSWORD who asks. Without an authority, it is the system's. What
// the configuration has stays.
func (c Config) External(lookup func(name string) (string, bool)) Config {
	get := func(name string) string {
		v, _ := lookup("ETCDCTL_" + name)
		return v
	}
	if !c.TLS.on() {
		c.TLS.CAFile, c.TLS.CertFile, c.TLS.KeyFile = get("CACERT"), get("CERT"), get("KEY")
	}
	if c.User == "" {
		name, password, both := strings.Cut(get("USER"), ":")
		c.User, c.Password = name, password
		if !both {
			c.Password = get("PASSWORD")
		}
	}
	return c
}
