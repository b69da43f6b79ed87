package control

import (
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// TestConfig: what cannot be meant is refused before anything is started, and says which
// word of it.
func TestConfig(t *testing.T) {
	t.Parallel()
	at := func(all ...string) (s []Server) {
		for _, a := range all {
			s = append(s, Server{Client: a, Peer: a})
		}
		return s
	}
	tls := TLS{Cert: []byte("c"), Key: []byte("k"), CA: []byte("a")}
	for _, c := range []struct {
		cfg  Config
		want string // "": it is good
	}{
		{Config{Job: "a-b.c_1", Servers: at("127.0.0.1:0")}, ""},
		{Config{Job: "a", Servers: at("localhost:1")}, ""},
		{Config{Job: "a", Servers: at("[::1]:1")}, ""},
		{Config{Job: "a", Servers: at("node0:1"), TLS: tls}, ""},
		{Config{Job: "a", Servers: at("node0:1"), Insecure: true}, ""},
		{Config{Job: "a", Servers: at("h:1", "h:2", "h:3"), TLS: tls}, ""},
		{Config{Job: "a", Endpoints: []string{"https://h:1"}, TLS: tls}, ""},
		{Config{Job: "a", Endpoints: []string{"https://h:1"}}, ""},
		{Config{Job: "a", Endpoints: []string{"http://127.0.0.1:1"}}, ""},
		{Config{Servers: at("127.0.0.1:0")}, `job ""`},
		{Config{Job: "a/b", Servers: at("127.0.0.1:0")}, `job "a/b"`},
		{Config{Job: strings.Repeat("a", 101), Servers: at("127.0.0.1:0")}, "at most 100"},
		{Config{Job: "a", Rank: -1, Servers: at("127.0.0.1:0")}, "rank -1"},
		{Config{Job: "a"}, "neither"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Endpoints: []string{"http://x"}}, "not both"},
		{Config{Job: "a", Servers: at("127.0.0.1:1", "127.0.0.1:2")}, "odd"},
		{Config{Job: "a", Servers: at("node0:1")}, "not on loopback"},
		{Config{Job: "a", Servers: at("10.0.0.1:1")}, "not on loopback"},
		{Config{Job: "a", Servers: at("node0")}, `"node0" is no address`},
		{Config{Job: "a", Servers: at("127.0.0.1:1", "127.0.0.1:2", ":3")}, "server 2"},
		{Config{Job: "a", Servers: at("h:1"), TLS: TLS{CA: []byte("a")}}, "authority alone"},
		{Config{Job: "a", Endpoints: []string{"h:1"}}, "no URL"},
		{Config{Job: "a", Endpoints: []string{"http://h:1"}}, "not on loopback"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), TTL: -time.Second}, "lease of -1s"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: 3, Host: "127.0.0.1"}, ""},
		{Config{Job: "a", Servers: at("h:1"), Spread: 5, Host: "h", TLS: tls}, ""},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: 2, Host: "127.0.0.1"}, "odd"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: -1, Host: "127.0.0.1"}, "odd"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: 3}, "etcd here"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: 3, Host: "h"}, "not on loopback"},
		{Config{Job: "a", Servers: at("127.0.0.1:0"), Spread: 3, Host: "127.0.0.1", Dir: "d"},
			"keeps no data in d"},
		{Config{Job: "a", Servers: at("h:1", "h:2", "h:3"), Spread: 3, Host: "h", TLS: tls},
			"one embedded server"},
		{Config{Job: "a", Endpoints: []string{"https://h:1"}, Spread: 3, Host: "h"},
			"one embedded server"},
	} {
		_, err := c.cfg.check()
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

// TestExternal reads what etcdctl reads, and keeps what is given.
func TestExternal(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	vars := map[string]string{"ETCDCTL_CACERT": "ca", "ETCDCTL_CERT": "cert",
		"ETCDCTL_KEY": "key", "ETCDCTL_USER": "name:a:b"}
	lookup := func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
	c := Config{}.External(lookup)
	if c.TLS.CAFile != "ca" || c.TLS.CertFile != "cert" || c.TLS.KeyFile != "key" ||
		c.User != "name" || c.Password != "a:b" {
		t.Errorf("%+v", c)
	}
	vars = map[string]string{"ETCDCTL_USER": "name", "ETCDCTL_PASSWORD": "c"}
	if c := (Config{}).External(lookup); c.User != "name" || c.Password != "c" || c.TLS.on() {
		t.Errorf("%+v", c)
	}
	c = Config{User: "me", Password: "p"}.External(lookup)
	if c.User != "me" || c.Password != "p" {
		t.Errorf("%+v", c)
	}
}
