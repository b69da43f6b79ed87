package wrap_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/transporttest"
	"github.com/gomem/gomem/distrib/wrap"
)

// TestTransport: what is wrapped is a transport still, and so is what is wrapped twice.
func TestTransport(t *testing.T) {
	for name, wraps := range map[string][]distrib.Wrap{
		"limit": {wrap.Limit(1e9, 1<<20)},
		"meter": {new(wrap.Meter).Wrap},
		"both":  {wrap.Limit(1e9, 1<<20), new(wrap.Meter).Wrap},
	} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, transporttest.Network{Window: 1 << 20, In: synctest.Test,
				New: func(t *testing.T, n int) []distrib.Transport {
					ts := memnet.New(n, memnet.Options{Window: 1 << 20, Bps: 1e10,
						Latency: time.Millisecond})
					for i := range ts {
						for _, w := range wraps {
							ts[i] = w(ts[i])
						}
					}
					return ts
				}})
		})
	}
}
