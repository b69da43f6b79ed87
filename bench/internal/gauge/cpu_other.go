//go:build !unix

package gauge

import "time"

// CPUTime is the time, of which differences count, since this system does not tell for how much
// of it processors have worked for this process.
func CPUTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
