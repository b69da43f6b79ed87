package cuda

import "github.com/gomem/gomem/graph/tensor"

// Branch is commands of which data says which are run: the number at Addr, i32 or bool, when all
// commands before it are done. Choose says of it which of the Lists are run, lo to hi-1, in order;
// its error is that of the step. So whoever issues waits for the stream and looks: other streams
// are given nothing meanwhile, but go on with what they have.
//
// The alternative is to run all that may be needed, and to select what counts of it: nobody looks,
// but a loop takes as long as its bound, both sides of a branch are computed, and nobody is told of
// a loop that does not end within its bound.
type Branch struct {
	Addr   uint64
	Type   tensor.DType
	Lists  [][]Command
	Choose func(n int32) (lo, hi int, err error)
}

// Clear sets bytes to 0.
type Clear struct {
	Addr  uint64
	Bytes int64
}

func (Branch) command() {}
func (Clear) command()  {}
