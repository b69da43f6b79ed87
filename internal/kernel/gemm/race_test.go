//go:build race

package gemm

// raceEnabled says that the race detector is on: sync.Pool then drops what it is
// given at random, and memory costs many times its time.
const raceEnabled = true
