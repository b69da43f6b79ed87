package wire

import "sync"

// calls calls functions one after the other, by a goroutine that holds nothing: neither
// that of who sends nor one of gRPC's, which a slow function must not hold up.
type calls struct {
	mu      sync.Mutex
	waiting []call
	busy    bool
}

type call struct {
	done func(error)
	err  error
}

func (c *calls) add(done func(error), err error) {
	if done == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, call{done, err})
	if !c.busy {
		c.busy = true
		go c.run()
	}
}

func (c *calls) run() {
	for {
		c.mu.Lock()
		now := c.waiting
		c.waiting = nil
		if c.busy = len(now) > 0; !c.busy {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for _, n := range now {
			n.done(n.err)
		}
	}
}
