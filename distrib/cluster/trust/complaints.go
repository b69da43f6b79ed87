package trust

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// How many refusals of a host are said in how long. Others are counted, and said in one line.
const (
	complaintsPerHost = 3
	complaintsEvery   = time.Minute
)

// complaints keep a flood of refusals from being a flood of lines.
type complaints struct {
	log func(string) // nil: nobody asks

	mu    sync.Mutex
	hosts map[string]*complaint
}

// complaint is what was said of a host since a time, and how many refusals were not.
type complaint struct {
	since  time.Time
	said   int
	unsaid int
}

// add says why somebody of a host was refused, unless enough was said of it lately.
func (c *complaints) add(host, text string, now time.Time) {
	if c.log == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosts == nil || len(c.hosts) >= maxVisitors {
		c.rest()
		c.hosts = map[string]*complaint{}
	}
	h := c.hosts[host]
	if h == nil {
		h = &complaint{since: now}
		c.hosts[host] = h
	}
	if now.Sub(h.since) >= complaintsEvery {
		c.more(host, h)
		*h = complaint{since: now}
	}
	if h.said >= complaintsPerHost {
		h.unsaid++
		return
	}
	h.said++
	c.log(text)
}

// end says how many refusals were not said.
func (c *complaints) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest()
	c.hosts = nil
}

func (c *complaints) rest() {
	for _, host := range slices.Sorted(maps.Keys(c.hosts)) {
		c.more(host, c.hosts[host])
	}
}

func (c *complaints) more(host string, h *complaint) {
	if h.unsaid > 0 {
		c.log(fmt.Sprintf("%d more connections from %s did not join", h.unsaid, host))
	}
}
