//go:build !linux

package lab

// sw is not made here.
type sw struct{}

func newSwitch([]string) (*sw, error) { return nil, ErrNone }

func (*sw) lose(int, float64, float64) {}
func (*sw) close()                     {}
