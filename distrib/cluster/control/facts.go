package control

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"runtime"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Facts is what a node says of itself to [Doctor].
type Facts struct {
	Node  distrib.NodeID `json:"node"`
	Host  string         `json:"host"`
	Time  time.Time      `json:"time"` // when it answers
	Gomem string         `json:"gomem"`
	Go    string         `json:"go"`
	Plan  string         `json:"plan"` // digest of the plan that it would run; "": none yet

	Expires time.Time `json:"expires"` // of its certificate; zero: it has none

	Memory     int64  `json:"memory"`      // free, in bytes; -1: not known
	NeedMemory int64  `json:"need_memory"` // that the plan takes; 0: not known
	Disk       int64  `json:"disk"`        // free where Dir is; -1: not known
	NeedDisk   int64  `json:"need_disk"`
	Dir        string `json:"dir"` // checkpoints and the server's data
}

// Observe says what this machine says of itself: what is given is completed by the host, the
// time, Go's version and what memory and disk, under f.Dir, are free.
func (f Facts) Observe() Facts {
	f.Time, f.Go = time.Now(), runtime.Version()
	if host, err := os.Hostname(); err == nil {
		f.Host = host
	}
	f.Memory, f.Disk = freeMemory(), -1
	if f.Dir != "" {
		f.Disk = freeDisk(f.Dir)
	}
	return f
}

// Facts are this node's, with what its configuration says of certificates and disks.
func (c *Control) facts(f Facts) Facts {
	f.Node = distrib.NodeID(c.cfg.Rank)
	if f.Dir == "" && c.server != nil {
		f.Dir = c.server.dir
	}
	if c.server != nil {
		f.NeedDisk = max(f.NeedDisk, serverDisk)
	}
	if c.cfg.TLS.own() {
		f.Expires = c.cfg.TLS.expires()
	}
	return f.Observe()
}

// serverDisk is what an embedded server needs: two segments of its log, which are made
// before they are used, and room for the rest.
const serverDisk = 192 << 20

// expires is when the certificate is over, or zero if it cannot be read.
func (t *TLS) expires() time.Time {
	_, cert, _, err := t.load()
	if err != nil {
		return time.Time{}
	}
	b, _ := pem.Decode(cert)
	if b == nil {
		return time.Time{}
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return time.Time{}
	}
	return c.NotAfter
}
