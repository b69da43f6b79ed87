package device

import (
	"fmt"

	"github.com/gomem/gomem/plan/space"
)

// Check reports a launch that no device may run: on an engine that does not
// compute, with a memory that the engine cannot reach, or with an operand that is
// not inside its memory or not of its region's size.
func (l Launch) Check() error {
	if l.Engine.Copies() {
		return fmt.Errorf("an engine that %s does not run operations", l.Engine)
	}
	for i, o := range l.In {
		if err := o.check(l.Engine, "read", l.Engine.Reads()); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	for i, o := range l.Out {
		if err := o.check(l.Engine, "write", l.Engine.Writes()); err != nil {
			return fmt.Errorf("result %d: %w", i, err)
		}
	}
	if l.Scratch.Bytes == 0 {
		return nil
	}
	if err := l.Scratch.reached(l.Engine, "write", l.Engine.Writes()); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	return nil
}

// Check reports a copy that no device may run: on an engine that computes, with
// an end in a memory that the engine cannot reach or outside it, or with ends of
// different sizes.
func (c Copy) Check() error {
	if !c.Engine.Copies() {
		return fmt.Errorf("an engine that %s does not copy", c.Engine)
	}
	if err := c.Src.reached(c.Engine, "read", c.Engine.Reads()); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := c.Dst.reached(c.Engine, "write", c.Engine.Writes()); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if c.Dst.Bytes != c.Src.Bytes {
		return fmt.Errorf("copy of %d bytes to %d", c.Src.Bytes, c.Dst.Bytes)
	}
	return nil
}

// Check reports a call that no device may run: on an engine that has no part in the
// network, with a region that is not in the memory from or to which the engine exchanges, or with
// an operand of another size than what it is copied to.
func (c Call) Check() error {
	if c.Engine != space.Send && c.Engine != space.Await && c.Engine != space.Peer {
		return fmt.Errorf("an engine that %s does not call", c.Engine)
	}
	own := min(c.Engine.Reads(), c.Engine.Writes())
	for i, r := range append([]Region{c.Data}, c.In...) {
		if err := r.reached(c.Engine, "reach", own); err != nil {
			return fmt.Errorf("region %d: %w", i, err)
		}
	}
	if len(c.In) > 0 && c.In[0].Bytes > c.Data.Bytes {
		return fmt.Errorf("copy of %d bytes to %d", c.In[0].Bytes, c.Data.Bytes)
	}
	return nil
}

// Misplaced reports a task on a stream of another engine: what its operands were
// checked for does not hold there.
func Misplaced(task space.Engine, stream string, e space.Engine) error {
	if task != e {
		return fmt.Errorf("a task for an engine that %s on stream %s, which %s", task, stream, e)
	}
	return nil
}

// Check reports a region outside its memory.
func (r Region) Check() error {
	if r.Mem == nil {
		return fmt.Errorf("region of %d bytes in no memory", r.Bytes)
	}
	if size := r.Mem.Bytes(); r.Off < 0 || r.Bytes < 0 || r.Bytes > size || r.Off > size-r.Bytes {
		return fmt.Errorf("region of %d bytes at %d is outside a memory of %d bytes", r.Bytes,
			r.Off, size)
	}
	return nil
}

// reached reports a region that is not in the space that an engine can reach.
func (r Region) reached(e space.Engine, verb string, s space.ID) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.Mem.Space() != s {
		return fmt.Errorf("an engine that %s cannot %s %s memory", e, verb, r.Mem.Space())
	}
	return nil
}

func (o Operand) check(e space.Engine, verb string, s space.ID) error {
	if o.Type.Bytes() != o.Bytes {
		return fmt.Errorf("%s in a region of %d bytes", o.Type, o.Bytes)
	}
	return o.reached(e, verb, s)
}
