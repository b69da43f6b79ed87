package data

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/regular"
)

// TestOrder: an epoch has full batches of items that are all different, and the
// next epoch other batches.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.IntRange(1, 200).Draw(t, "items")
		o := Order{Items: items, Batch: rapid.IntRange(1, items).Draw(t, "batch"),
			Seed: rapid.Uint64().Draw(t, "seed")}
		for epoch := range 2 {
			var seen []int
			for step := range o.Steps() {
				for row := range o.Batch {
					seen = append(seen, o.Item(epoch*o.Steps()+step, row))
				}
			}
			slices.Sort(seen)
			if n := len(slices.Compact(slices.Clone(seen))); n != items/o.Batch*o.Batch ||
				n != len(seen) || seen[0] < 0 || seen[n-1] >= items {
				t.Fatalf("epoch %d of %+v is %v", epoch, o, seen)
			}
		}
	})
	o := Order{Items: 1000, Batch: 10, Seed: 1}
	same := 0
	for row := range 10 {
		if o.Item(0, row) == o.Item(100, row) {
			same++
		}
	}
	if same > 3 {
		t.Errorf("%d of 10 items are in the same place in the next epoch", same)
	}
}

// TestHeldOutShare: 1 of 50 names is held out.
func TestHeldOutShare(t *testing.T) {
	n := 0
	for i := range 50_000 {
		if HeldOut(string(rune('a'+i%26))+string(rune(i)), 0) {
			n++
		}
	}
	if n < 850 || n > 1150 {
		t.Errorf("%d of 50,000 names are held out", n)
	}
}

func TestSummarize(t *testing.T) {
	var i Info
	i.Summarize([]File{FileOf("a/b", []byte("abc")), FileOf("c", []byte("defg"))})
	const digest = "0f7a64e26fa055fa"  // of the lines "SHA-256 a/b" and "SHA-256 c"
	const listing = "bb8496e151724089" // of the lines "3 a/b" and "4 c"
	if i.Files != 2 || i.Bytes != 7 || i.SHA256[:16] != digest || i.Listing[:16] != listing {
		t.Errorf("%+v", i)
	}
	i.Noun, i.Pairs, i.Dropped, i.Reason = "image", 1, 2, "too small"
	const want = ": 2 files (0.0 MiB) of , 1 image (0 held out), sha256 " + digest +
		", 2 images dropped (too small)"
	if have := i.String(); have != want {
		t.Errorf("says %q, want %q", have, want)
	}
}

func TestFileError(t *testing.T) {
	err := FileError("dir:x", "x/y", &fs.PathError{Op: "open", Path: "x/y", Err: fs.ErrNotExist})
	if err.Error() != "data dir:x: x/y: file does not exist: check the path" ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("says %q", err)
	}
}

// TestRemediesAreSaidOnce: whoever wraps an error that has a remedy adds no other.
func TestRemediesAreSaidOnce(t *testing.T) {
	for cause, want := range map[error]string{
		fs.ErrNotExist:        "file does not exist: check the path",
		fs.ErrPermission:      "permission denied: make it readable or choose another",
		regular.ErrNotRegular: regular.ErrNotRegular.Error() + ": give a file",
	} {
		once := Remedied(&fs.PathError{Op: "open", Path: "x", Err: cause})
		again := Remedied(&Error{Spec: "dir:x", Path: "y", Err: once})
		if once.Error() != want || again.Error() != "data dir:x: y: "+want {
			t.Errorf("%q, then %q, want %q", once, again, want)
		}
	}
}
