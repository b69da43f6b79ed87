package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image/color"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

// refused demands an error of one line that names the file and holds want.
func refused(t *testing.T, spec, file, want string) {
	t.Helper()
	_, err := Open(t.Context(), spec, Options{}, nil)
	if _, ok := errors.AsType[*data.Error](err); !ok {
		t.Errorf("%q: error %v of type %T", spec, err, err)
		return
	}
	if line := err.Error(); !strings.Contains(line, want) || !strings.Contains(line, file) ||
		strings.Contains(line, "\n") {
		t.Errorf("%q: %q, want one line with %q and %q", spec, line, file, want)
	}
}

func TestBadSpecs(t *testing.T) {
	for spec, want := range map[string]string{
		"":                   "empty spec: give glyphs, dir:PATH, cifar10:DIR or icons:DIR",
		"glyph":              "unknown source: give glyphs",
		"glyphs:big":         "unknown source",
		"dir":                "no path",
		"dir:":               "no path",
		"cifar10:":           "no path",
		"icons":              "no path",
		"zip:x":              "unknown source",
		"dir:/no/such/place": "check the path",
		"icons:/no/such":     "check the path",
		"cifar10:/no/such":   "check the path",
		"dir:a\nb":           "check the path",
	} {
		refused(t, spec, "", want)
	}
	if _, err := Open(t.Context(), "glyphs", Options{MaxImages: -1}, nil); err == nil ||
		!strings.Contains(err.Error(), "limit of -1 images") {
		t.Errorf("negative limit: %v", err)
	}
}

func TestBadDirectories(t *testing.T) {
	empty := t.TempDir()
	refused(t, "dir:"+empty, empty, "no directory in it")
	refused(t, "icons:"+empty, empty, "0 PNG files, no two of a name")

	one := t.TempDir()
	write(t, filepath.Join(one, "cat", "1.png"), flat(2, 2, color.White))
	refused(t, "dir:"+one, one, "one kind of images, cat: give two or more")
	refused(t, "icons:"+one, one, "1 PNG files, no two of a name")
	write(t, filepath.Join(one, "dog", "1.txt"), nil)
	refused(t, "dir:"+one, filepath.Join(one, "dog"),
		"no PNG or JPEG file: add some, or remove the directory")

	file := filepath.Join(one, "cat", "1.png")
	refused(t, "dir:"+file, file, "is a file: give the directory that holds it")
	refused(t, "icons:"+file, file, "is a file: give the directory that holds it")
}

// vast is the beginning of a PNG of far too many pixels.
func vast() []byte {
	content := flat(1, 1, color.White)
	header := content[12:29] // the type and data of the first chunk
	binary.BigEndian.PutUint32(header[4:], 1<<15)
	binary.BigEndian.PutUint32(header[8:], 1<<15)
	binary.BigEndian.PutUint32(content[29:], crc32.ChecksumIEEE(header))
	return content
}

func TestBadImages(t *testing.T) {
	good := flat(9, 9, color.White)
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"empty.png": {nil, "not a whole PNG or JPEG"},
		"text.png":  {[]byte("hello"), "not a whole PNG or JPEG"},
		"cut.png":   {good[:len(good)-20], "not a whole PNG or JPEG"},
		"wrong.png": {bytes.Replace(good, []byte("IDAT"), []byte("IDAX"), 1),
			"not a whole PNG or JPEG"},
		"cut.jpg":  {photo(40, 40)[:300], "replace or remove it"},
		"vast.png": {vast(), "image of 32768 by 32768 pixels: scale it down"},
	} {
		root := tree(t, 2)
		path := filepath.Join(root, "red", name)
		write(t, path, test.content)
		for _, scheme := range []string{"dir:", "icons:"} {
			if scheme == "icons:" && filepath.Ext(name) == ".jpg" {
				continue
			}
			if scheme == "icons:" { // two of a name are a kind
				write(t, filepath.Join(root, "blue", name), test.content)
				write(t, filepath.Join(root, "green", name), good)
			}
			_, err := Open(t.Context(), scheme+root, Options{Strict: true}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s%s: strict about it: %v", scheme, name, err)
			}
			s, err := Open(t.Context(), scheme+root, Options{}, nil)
			if err != nil {
				t.Errorf("%s%s: %v", scheme, name, err)
				continue
			}
			if line := s.Info.String(); s.Info.LeftOut == 0 || !strings.Contains(line, test.want) ||
				!strings.Contains(line, path) && scheme == "dir:" {
				t.Errorf("%s%s: %d left out: %q", scheme, name, s.Info.LeftOut, line)
			}
		}
	}
	root := tree(t, 2)
	for i := range 2 {
		write(t, filepath.Join(root, "red", strconv.Itoa(i)+".PNG"), good[:40])
	}
	refused(t, "dir:"+root, filepath.Join("red", "0.PNG"),
		"no image of red can be read (not a whole")
}

// TestOtherPictures: pictures that are not read are counted, what is no picture is not, and
// what is hidden is not there, in any folder.
func TestOtherPictures(t *testing.T) {
	root := tree(t, 2)
	write(t, filepath.Join(root, "red", "photo.WebP"), []byte("RIFF????WEBP"))
	write(t, filepath.Join(root, "red", "notes.txt"), nil)
	write(t, filepath.Join(root, "red", "._0.PNG"), []byte("what a Mac keeps of 0.PNG"))
	write(t, filepath.Join(root, "red", ".thumbs", "0.png"), flat(1, 1, color.White))
	write(t, filepath.Join(root, ".cache", "0.png"), flat(1, 1, color.White))
	s := open(t, "dir:"+root, Options{})
	const says = "1 path left out, the first "
	if line := s.Info.String(); s.Info.Pairs != 4 || !strings.Contains(line, says) ||
		!strings.Contains(line, "photo.WebP (a picture of another kind: convert it") {
		t.Errorf("%q", line)
	}
	before := s.Info.SHA256
	write(t, filepath.Join(root, "red", "0.PNG"), flat(5, 9, color.NRGBA{R: 254, A: 255}))
	edited := open(t, "dir:"+root, Options{})
	if edited.Info.Listing != s.Info.Listing || edited.Info.SHA256 == before {
		t.Errorf("an edited picture: %s, was %s", edited.Info, s.Info)
	}
	paths, err := List(filepath.Join(root, "red"))
	if err != nil || len(paths) != 2 {
		t.Errorf("a directory's pictures are %q, %v", paths, err)
	}
}

func TestUnreadable(t *testing.T) {
	root := tree(t, 2)
	path := filepath.Join(root, "red", "0.PNG")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(path); err == nil {
		f.Close()
		t.Skip("this user may read everything")
	}
	refused(t, "dir:"+root, path, "make it readable")
}

func TestBadCIFAR(t *testing.T) {
	for _, test := range []struct {
		file    string
		content []byte
		want    string
	}{
		{"data_batch_1.bin", nil, "0 bytes are not records of 3073"},
		{"data_batch_3.bin", make([]byte, cifarRecord-1),
			"3072 bytes are not records of 3073: give the binary version of CIFAR-10"},
		{"test_batch.bin", make([]byte, cifarRecord+1), "3074 bytes are not records"},
		{"data_batch_5.bin", bytes.Repeat([]byte{10}, 2*cifarRecord),
			"record 1 has label 10: want 0 to 9"},
	} {
		root := cifarFiles(t, 2)
		write(t, filepath.Join(root, test.file), test.content)
		refused(t, "cifar10:"+root, filepath.Join(root, test.file), test.want)
	}
	root := cifarFiles(t, 1)
	if err := os.Remove(filepath.Join(root, "data_batch_4.bin")); err != nil {
		t.Fatal(err)
	}
	refused(t, "cifar10:"+root, "data_batch_4.bin", "check the path")
}

func TestBadLoaders(t *testing.T) {
	small, large := open(t, "cifar10:"+cifarFiles(t, 1), Options{}), open(t, "glyphs", Options{})
	for _, test := range []struct {
		set  *Set
		opts LoaderOptions
		want string
	}{
		{large, LoaderOptions{Images: -1}, "batch of -1 images: give at least 1"},
		{large, LoaderOptions{Size: -1}, "images of -1 pixels a side"},
		{large, LoaderOptions{Size: 1 << 40}, "give smaller images or fewer"},
		{large, LoaderOptions{Images: 1 << 40}, "give smaller images or fewer"},
		{large, LoaderOptions{Scale: 2}, "scale 2 of images"},
		{large, LoaderOptions{Classes: -1}, "model of -1 classes"},
		{large, LoaderOptions{Classes: 62},
			"data glyphs: 62 kinds of images and the background: a model of 62 classes cannot " +
				"tell them apart, give it 63"},
		{small, LoaderOptions{Images: 6}, "5 training images do not fill one batch of 6"},
	} {
		if _, err := NewLoader(test.set, test.opts); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.opts, err, test.want)
		}
	}
	if _, err := NewLoader(large, LoaderOptions{Classes: 63}); err != nil {
		t.Error(err)
	}
}
