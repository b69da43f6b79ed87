package distrib_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/distrib"
)

// FuzzFilter: the numbers of a filter that is read are ones that it can work with; of any other
// text the error is one line.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"dvf:1e-3", "dvf:1:2:3", "topk:0.01,fp16", "powersgd:4,bf16",
		"svs", "dvf:1e-60", "dvf:1:1e-60", "dvf:1:1:1e30", "topk:NaN", "topk:0x1p-1",
		"powersgd:1e300", "svs:0", "fp16:1", "\n", "topk:\x1b[31m", ",", "", "x\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := distrib.ParseFilter(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", err)
			}
			return
		}
		chain, ok := made.(distrib.Chain)
		if !ok {
			chain = distrib.Chain{made}
		}
		if len(chain) != 1+strings.Count(text, ",") {
			t.Errorf("%q are %d filters", text, len(chain))
		}
		finite := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
		for _, one := range chain {
			sound := true
			switch x := one.(type) {
			case distrib.DVF:
				sound = finite(float64(x.Low)) && finite(float64(x.Up)) &&
					(x.Fast == 0 || finite(x.Fast))
			case distrib.TopK:
				sound = x.Frac > 0 && x.Frac <= 1
			case *distrib.PowerSGD:
				sound = x.Rank >= 0 && x.Rank <= 1<<20
			case *distrib.SVSelect:
				sound = x.C >= 0 && x.C <= 1<<20
			}
			if !sound {
				t.Errorf("%q is %+v", text, one)
			}
		}
	})
}

// FuzzRule: the same of rules, whose error says which there are or what is wrong.
func FuzzRule(f *testing.F) {
	for _, text := range []string{"add", "momentum:0.9", "momentum:0.99999999999", "adam",
		"adam:1e-60", "adarevision:1", "momentum:NaN", "momentum:-0", "adam:1e31", "\n", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		made, err := distrib.ParseRule(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", err)
			}
			return
		}
		sound := true
		switch x := made.(type) {
		case *distrib.Momentum:
			sound = x.Mu >= 0 && x.Mu < 1
		case *distrib.AdaRevision:
			sound = x.Alpha > 0
		case *distrib.Adam:
			sound = x.LR > 0 || text == "adam" || strings.TrimSpace(text) == "adam"
		}
		if !sound {
			t.Errorf("%q is %+v", text, made)
		}
	})
}

// FuzzShard: a shard that is read is written as the bytes that it was read from, and takes no
// more memory than these; anything else is damaged. The checksum is made right, since whoever
// means harm would do so.
func FuzzShard(f *testing.F) {
	var whole bytes.Buffer
	s := distrib.Shard{Epoch: 1, Node: 2, Clock: 3, Rows: []distrib.SavedRows{
		{Param: "w", Cols: 2, Row: 1, N: 2, Data: []float32{1, 2, 3, 4},
			State: [][]float32{{5}, {6, 7}}}}}
	if _, err := s.WriteTo(&whole); err != nil {
		f.Fatal(err)
	}
	body := whole.Bytes()[:whole.Len()-4]
	f.Add(body)
	f.Add(body[:48])
	// Rows and columns whose product, in bytes, is four more than 64 bits count.
	var much bytes.Buffer
	much.Write(body[:48])
	for _, v := range []uint32{0, 1<<31 + 1<<16 + 1, 0, 1<<31 - 1<<16 + 1, 0, 0} {
		much.Write(binary.LittleEndian.AppendUint32(nil, v))
	}
	f.Add(much.Bytes())
	var kinds bytes.Buffer
	s.Rows = []distrib.SavedRows{{Param: "w", Cols: 9, N: 1, Kind: "int32",
		Cells: []distrib.Update{distrib.Ints{N: 9, Idx: []uint32{3}, Val: []int32{1}}}}}
	if _, err := s.WriteTo(&kinds); err != nil {
		f.Fatal(err)
	}
	f.Add(kinds.Bytes()[:kinds.Len()-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		all := binary.LittleEndian.AppendUint32(bytes.Clone(body), sum)
		s, err := distrib.ReadShard(bytes.NewReader(all))
		if err != nil {
			if _, ok := errors.AsType[*distrib.FrameError](err); !ok {
				t.Errorf("%v is no *FrameError", err)
			}
			return
		}
		for _, r := range s.Rows {
			if r.Kind != "" {
				all = nil // integers are written in the shortest way, whatever they were read from
				if len(r.Cells) != int(r.N) {
					t.Errorf("%d rows are %d cells", r.N, len(r.Cells))
				}
			} else if int64(r.N)*int64(r.Cols) != int64(len(r.Data)) {
				t.Errorf("%d rows of %d columns have %d numbers", r.N, r.Cols, len(r.Data))
			}
		}
		var again bytes.Buffer
		_, err = s.WriteTo(&again)
		if err != nil || all != nil && !bytes.Equal(again.Bytes(), all) {
			t.Errorf("% x is written as % x, %v", all, again.Bytes(), err)
		}
	})
}
