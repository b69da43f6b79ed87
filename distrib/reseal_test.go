package distrib_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// resealed gives the first frame of a message the length and the checksum that it should
// have, so that what is behind them is reached.
func resealed(msg []byte) []byte {
	if len(msg) < 40 {
		return msg
	}
	msg = slices.Clone(msg)
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	size := min(int(le.Uint32(msg[32:])), len(msg)-40)
	le.PutUint32(msg[32:], uint32(size))
	sum := crc32.Update(crc32.Checksum(msg[:36], table), table, msg[40:40+size])
	le.PutUint32(msg[36:], sum)
	return msg
}

// sameBits compares frames, NaN and all.
func sameBits(a, b distrib.Frame) bool {
	u, v := a.U, b.U
	a.U, b.U = nil, nil
	return a == b && slices.EqualFunc(parts(u), parts(v), func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y)
	})
}

// parts are an update's numbers, whatever its form.
func parts(u distrib.Update) []float32 {
	switch u := u.(type) {
	case distrib.Dense:
		return u
	case distrib.Sparse:
		return u.Val
	case distrib.Factored:
		return slices.Concat(u.A, u.B)
	}
	return nil
}
