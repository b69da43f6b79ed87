//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package regular

// Held is a directory that is held.
type Held struct{}

// Hold does nothing: there are no locks here that end with a process.
func Hold(string) (*Held, error) { return &Held{}, nil }

// Release does nothing.
func (*Held) Release() {}
