package space

// Align is what addresses are multiples of, in bytes: a power of two, of at least [Line].
type Align int64

// Line is the host's: a cache line and the widest vector.
const Line Align = 64

// Wide is that of GPUs: libraries may choose among kernels by whether addresses are multiples of
// powers of two, up to what their memory is allocated by. With it that says nothing of a plan.
const Wide Align = 256

// Up is the next multiple from a number of bytes on: what so many take.
func (a Align) Up(bytes int64) int64 { return (bytes + int64(a) - 1) &^ (int64(a) - 1) }

// Down is the last multiple up to a number of bytes.
func (a Align) Down(bytes int64) int64 { return bytes &^ (int64(a) - 1) }

// Less is the least that may be taken where so many bytes are if all are rounded up: the highest
// block takes no more than its own.
func (a Align) Less(bytes int64) int64 { return max(0, bytes-int64(a)+1) }
