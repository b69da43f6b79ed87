package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/regular"
)

// open opens a set that must be good.
func open(t testing.TB, spec string, o Options) *Set {
	t.Helper()
	s, err := Open(t.Context(), spec, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes a file and the directories that hold it.
func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// flat is a PNG of one colour.
func flat(width, height int, c color.Color) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// photo is a JPEG of grey pixels.
func photo(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// tree writes a directory with a red and a blue kind of n images each.
func tree(t testing.TB, n int) string {
	root := t.TempDir()
	for i := range n {
		write(t, filepath.Join(root, "blue", fmt.Sprintf("deep/%d.png", i)),
			flat(10+i%7, 8, color.NRGBA{B: 255, A: 255}))
		write(t, filepath.Join(root, "red", fmt.Sprintf("%d.PNG", i)),
			flat(5, 9, color.NRGBA{R: 255, A: 255}))
	}
	return root
}

// cifarFiles writes the six files with n records each, whose pixels are their
// label.
func cifarFiles(t testing.TB, n int) string {
	root := t.TempDir()
	for i := range 6 {
		name := fmt.Sprintf("data_batch_%d.bin", i+1)
		if i == 5 {
			name = "test_batch.bin"
		}
		var records []byte
		for k := range n {
			records = append(records, bytes.Repeat([]byte{byte((i + k) % 10)}, cifarRecord)...)
		}
		write(t, filepath.Join(root, name), records)
	}
	return root
}

func TestGlyphs(t *testing.T) {
	files := 0
	s, err := Open(t.Context(), "glyphs", Options{}, func(n int) { files = n })
	if err != nil {
		t.Fatal(err)
	}
	if s.Classes != 62 || len(s.ClassNames) != 62 || s.ClassNames[0] != "0" ||
		s.ClassNames[10] != "A" || s.ClassNames[61] != "z" {
		t.Errorf("%d kinds: %q", s.Classes, s.ClassNames)
	}
	if s.train.len() != 50_000 || s.heldOut.len() != 1_000 || files != 10 {
		t.Errorf("%d and %d images, %d files", s.train.len(), s.heldOut.len(), files)
	}
	const start = "glyphs: 10 files ("
	if line := s.Info.String(); !strings.HasPrefix(line, start) ||
		!strings.Contains(line, "51000 images (1000 held out)") {
		t.Errorf("says %q", line)
	}
}

// paintAll paints the first n images of a part.
func paintAll(p part, n, size int) [][]byte {
	var all [][]byte
	for i := range n {
		dst := image.NewRGBA(image.Rect(0, 0, size, size))
		p.paint(dst, i, nil)
		all = append(all, dst.Pix)
	}
	return all
}

// TestGlyphsAreFunctions: an image depends on seed and number alone, and the
// parts share none.
func TestGlyphsAreFunctions(t *testing.T) {
	const n, size = 130, 24
	a, b := open(t, "glyphs", Options{}), open(t, "glyphs", Options{MaxImages: n})
	first, again := paintAll(a.train, n, size), paintAll(b.train, n, size)
	other := paintAll(open(t, "glyphs", Options{Seed: 1}).train, n, size)
	held := paintAll(b.heldOut, n, size)
	for i := range n {
		if !bytes.Equal(first[i], again[i]) {
			t.Errorf("image %d differs from itself", i)
		}
		if bytes.Equal(first[i], other[i]) || bytes.Equal(first[i], held[i]) {
			t.Errorf("image %d is that of another seed or part", i)
		}
		for k := range i {
			if bytes.Equal(first[i], first[k]) {
				t.Errorf("images %d and %d are the same", i, k)
			}
		}
	}
}

// TestGlyphsAreVisible: in every image, most pixels are paper, and a fair share
// is ink.
func TestGlyphsAreVisible(t *testing.T) {
	const n, size = 620, 32
	for i, pix := range paintAll(open(t, "glyphs", Options{}).train, n, size) {
		paper, ink := [3]int{int(pix[0]), int(pix[1]), int(pix[2])}, 0
		for p := 0; p < len(pix); p += 4 {
			far := 0
			for c := range 3 {
				d := int(pix[p+c]) - paper[c]
				far += d * d
			}
			if far > 60*60 {
				ink++
			}
		}
		if share := float64(ink) / (size * size); share < 0.005 || share > 0.6 {
			t.Errorf("image %d, %q: ink is %.3f of it", i, characters[i%62], share)
		}
	}
}

// TestAnySize: an image is drawn at any size.
func TestAnySize(t *testing.T) {
	s := open(t, "glyphs", Options{})
	for _, size := range []int{1, 2, 7, 160, 600} {
		paintAll(s.train, 3, size)
	}
}

func TestDir(t *testing.T) {
	root := tree(t, 60)
	write(t, filepath.Join(root, "README"), []byte("not a kind"))
	write(t, filepath.Join(root, ".cache", "x.png"), []byte("not read"))
	write(t, filepath.Join(root, "red", "list.txt"), []byte("not an image"))
	write(t, filepath.Join(root, "red", "photo.jpeg"), photo(7, 3))
	s := open(t, "dir:"+root, Options{})
	if !slices.Equal(s.ClassNames, []string{"blue", "red"}) || s.Info.Pairs != 121 ||
		s.Info.Files != 121 {
		t.Fatalf("kinds %q, %s", s.ClassNames, s.Info)
	}
	if s.heldOut.len() == 0 || s.heldOut.len() > 15 || s.train.len()+s.heldOut.len() != 121 {
		t.Errorf("%d images for training, %d held out", s.train.len(), s.heldOut.len())
	}
	names := map[string]bool{}
	for _, p := range []part{s.train, s.heldOut} {
		for i, e := range p.(files).entries {
			if !strings.HasPrefix(e.name, s.ClassNames[p.kind(i)]+"/") || names[e.name] {
				t.Errorf("%s is of kind %d, or is there twice", e.name, e.kind)
			}
			names[e.name] = true
		}
	}
	if again := open(t, "dir:"+root, Options{}); again.Info != s.Info {
		t.Errorf("first %s, then %s", s.Info, again.Info)
	}
}

// TestMaxImages: a bounded set is the beginning of the whole one.
func TestMaxImages(t *testing.T) {
	root := tree(t, 60)
	whole, some := open(t, "dir:"+root, Options{}), open(t, "dir:"+root, Options{MaxImages: 20})
	if some.train.len() != 20 || some.Info.Files != 20+some.Info.HeldOut {
		t.Errorf("%d images: %s", some.train.len(), some.Info)
	}
	for i, e := range some.train.(files).entries {
		if w := whole.train.(files).entries[i].name; e.name != w {
			t.Errorf("image %d is %s, want %s", i, e.name, w)
		}
	}
	if c := open(t, "cifar10:"+cifarFiles(t, 3), Options{MaxImages: 2}); c.train.len() != 2 ||
		c.heldOut.len() != 2 {
		t.Errorf("%d and %d records, want 2", c.train.len(), c.heldOut.len())
	}
}

func TestCIFAR(t *testing.T) {
	s := open(t, "cifar10:"+cifarFiles(t, 4), Options{})
	if s.Classes != 10 || s.train.len() != 20 || s.heldOut.len() != 4 || s.Info.Files != 6 ||
		s.Info.Bytes != 24*cifarRecord {
		t.Errorf("%d and %d records: %s", s.train.len(), s.heldOut.len(), s.Info)
	}
	for i, pix := range paintAll(s.heldOut, 4, 16) {
		if kind := s.heldOut.kind(i); kind != (5+i)%10 || int(pix[0]) != kind ||
			int(pix[2]) != kind || pix[3] != 255 {
			t.Errorf("record %d has kind %d and pixel %v", i, kind, pix[:4])
		}
	}
}

// TestPlanes: CIFAR-10 has its colours in planes.
func TestPlanes(t *testing.T) {
	record := append([]byte{3}, slices.Concat(bytes.Repeat([]byte{10}, cifarPlane),
		bytes.Repeat([]byte{20}, cifarPlane), bytes.Repeat([]byte{30}, cifarPlane))...)
	pix := paintAll(cifar(record), 1, 32)[0]
	if !bytes.Equal(pix[:4], []byte{10, 20, 30, 255}) {
		t.Errorf("the first pixel is %v", pix[:4])
	}
}

func TestIcons(t *testing.T) {
	root := t.TempDir()
	for name, size := range map[string]int{"16/go.png": 16, "32/go.png": 32, "16/stop.png": 16,
		"x/y/stop.png": 8, "16/once.png": 16} {
		write(t, filepath.Join(root, name), flat(size, size, color.NRGBA{}))
	}
	s := open(t, "icons:"+root, Options{})
	if !slices.Equal(s.ClassNames, []string{"go", "stop"}) || s.Info.Pairs != 4 {
		t.Errorf("kinds %q, %s", s.ClassNames, s.Info)
	}
	if line := s.Info.String(); !strings.HasSuffix(line,
		", 1 image dropped (a name with a single file)") {
		t.Errorf("says %q", line)
	}
	if pix := paintAll(s.train, 1, 4)[0]; !bytes.Equal(pix[:4], []byte{128, 128, 128, 255}) {
		t.Errorf("what is transparent is %v, want grey", pix[:4])
	}
}

// TestLeftOut: what is no regular file is neither read nor waited for, and what
// may not be read is no reason to stop; both are counted, and the first is named.
func TestLeftOut(t *testing.T) {
	root := tree(t, 3)
	kinds, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(root, kinds[0].Name())
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(first, "0pipe.png"), 0o600),
		os.Symlink("0pipe.png", filepath.Join(first, "link.png")),
		os.Symlink(kinds[0].Name(), filepath.Join(root, "zlink")),
		syscall.Mkfifo(filepath.Join(first, "pipe.txt"), 0o600), // not asked for
	} {
		if err != nil {
			t.Skip(err)
		}
	}
	want := 3
	if os.Getuid() != 0 {
		secret := filepath.Join(first, "secret.png")
		write(t, secret, nil)
		if err := os.Chmod(secret, 0); err != nil {
			t.Fatal(err)
		}
		want++
	}
	s := open(t, "dir:"+root, Options{})
	if s.Info.LeftOut != want || s.Info.Pairs != 6 || s.Classes != 2 {
		t.Errorf("left out %d, %d images of %d kinds", s.Info.LeftOut, s.Info.Pairs, s.Classes)
	}
	if line := s.Info.String(); !strings.HasSuffix(line, fmt.Sprintf(", %d paths left out, "+
		"the first %s (a link, or no regular file)", want, filepath.Join(first, "0pipe.png"))) {
		t.Errorf("says %q", line)
	}
	if s := open(t, "icons:"+root, Options{}); s.Info.LeftOut != 2 {
		t.Errorf("icons: %s", s.Info)
	}

	r := &reader{ctx: t.Context(), path: root}
	if p, err := r.readFile("a", filepath.Join(first, "0pipe.png")); p.bytes != nil || err != nil ||
		!errors.Is(p.bad, regular.ErrNotRegular) {
		t.Errorf("a file that became a pipe: %+v, %v", p, err)
	}
	all := []entry{{name: "a", kind: 0, bytes: []byte{1}}, {name: "b", kind: 1}}
	if err := r.checkKinds(&Set{ClassNames: []string{"cat", "dog", "far"}}, all); err == nil ||
		!strings.Contains(err.Error(), "no image of dog can be read") {
		t.Errorf("a kind of which nothing can be read: %v", err)
	}
}

// TestPipeForCIFAR: a pipe in place of records is refused.
func TestPipeForCIFAR(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "data_batch_1.bin"), 0o600); err != nil {
		t.Skip(err)
	}
	refused(t, "cifar10:"+dir, "data_batch_1.bin", "a pipe, not a regular file: give a file")
}

// TestLinkedRoot: a link may lead to the data.
func TestLinkedRoot(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tree(t, 3), link); err != nil {
		t.Skip(err)
	}
	if s := open(t, "dir:"+link, Options{}); s.Info.Pairs != 6 {
		t.Errorf("%s", s.Info)
	}
	if s := open(t, "icons:"+link, Options{}); s.Classes != 3 {
		t.Errorf("kinds %q", s.ClassNames)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, spec := range []string{"dir:" + tree(t, 2), "cifar10:" + cifarFiles(t, 1), "icons:" +
		tree(t, 2)} {
		if _, err := Open(ctx, spec, Options{}, nil); err != context.Canceled {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
