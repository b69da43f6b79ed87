package images

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder has a directory for each kind, with pictures of several sizes.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for k, kind := range []string{"dark", "light"} {
		if err := os.Mkdir(filepath.Join(dir, kind), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			img := image.NewRGBA(image.Rect(0, 0, 20+i, 70-i))
			for p := range img.Pix {
				img.Pix[p] = uint8(100*k + p%100)
			}
			img.Set(0, 0, color.White)
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(dir, kind, string(rune('a'+i%26))+strings.Repeat("x", i)+".png")
			if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestPixelsAreHeldOut: a file that is read alone has the pixels that it has in a
// held-out batch.
func TestPixelsAreHeldOut(t *testing.T) {
	dir := folder(t)
	set, err := Open(context.Background(), "dir:"+dir, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	part := set.heldOut.(files)
	if part.len() == 0 {
		t.Fatal("nothing is held out")
	}
	for _, scale := range []Scale{Means, Symmetric} {
		const size = 24
		l, err := NewLoader(set, LoaderOptions{Images: 1, Size: size, Scale: scale})
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range part.entries {
			src, err := Read(filepath.Join(dir, e.name))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, 3*size*size)
			Pixels(got, src, size, scale)
			if !slices.Equal(got, l.HeldOut(i).Inputs[0].F32()) {
				t.Errorf("%s: other pixels than in the batch", e.name)
			}
		}
	}
}

// TestReadErrors: what is no picture is an error.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.png")
	if err := os.WriteFile(text, []byte("no picture"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		text: "not a whole PNG or JPEG", dir: "", filepath.Join(dir, "none.png"): "no such file",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", path, err, says)
		}
	}
	if _, err := Decode(nil); err == nil {
		t.Error("an empty file is a picture")
	}
	paths, err := List(dir)
	if err != nil || !slices.Equal(paths, []string{text}) {
		t.Errorf("%v, %v", paths, err)
	}
	if _, err := List(text); err == nil {
		t.Error("a file is a directory")
	}
}
