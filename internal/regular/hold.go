package regular

import "errors"

// ErrHeld is of a directory that somebody else holds, which may be in the same process.
var ErrHeld = errors.New("another process holds the directory")
