package trust

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Token lets a process join a job. It is a secret.
type Token struct {
	fingerprint [sha256.Size]byte // of the authority's certificate
	secret      [secretSize]byte
}

const (
	secretSize  = 32
	tokenPrefix = "gomem1"
	maxToken    = 256 // bytes of a file
)

// Format prints that it is a token, and not which one.
func (Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[join token]") }

// MarshalText is refused: a token is written by WriteFile.
func (Token) MarshalText() ([]byte, error) {
	return nil, errors.New("a join token is not written out")
}

func (t Token) matches(secret []byte) bool {
	return subtle.ConstantTimeCompare(t.secret[:], secret) == 1
}

// Reveal is the token's text, for a file or a site's store of secrets.
func (t Token) Reveal() []byte {
	e := base64.RawURLEncoding
	return []byte(tokenPrefix + "." + e.EncodeToString(t.fingerprint[:]) + "." +
		e.EncodeToString(t.secret[:]) + "\n")
}

// errToken says nothing of what was read, which may be another secret.
var errToken = errors.New("no join token of gomem (" + tokenPrefix + ".fingerprint.secret)")

// ParseToken reads what Reveal wrote.
func ParseToken(text []byte) (Token, error) {
	var t Token
	parts := strings.Split(strings.TrimSpace(string(text)), ".")
	if len(text) > maxToken || len(parts) != 3 || parts[0] != tokenPrefix {
		return t, errToken
	}
	if !decode(t.fingerprint[:], parts[1]) || !decode(t.secret[:], parts[2]) {
		return Token{}, errToken
	}
	return t, nil
}

// decode refuses ends of lines, too, which base64 passes over: a token has one text.
func decode(dst []byte, text string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && !strings.ContainsAny(text, "\r\n") && copy(dst, b) == len(dst) &&
		len(b) == len(dst)
}

// WriteFile puts the token into a file of mode 0600, which is replaced at once.
func (t Token) WriteFile(path string) error { return writeSecret(path, t.Reveal()) }

func writeSecret(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadToken reads a token's file, and waits for it until ctx ends: rank 0 may still be
// about to write it. A file that everybody can read is refused.
func ReadToken(ctx context.Context, path string) (Token, error) {
	for {
		text, err := readSecret(path, maxToken)
		switch {
		case err == nil:
			t, err := ParseToken(text)
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return t, err
		case !errors.Is(err, fs.ErrNotExist):
			return Token{}, err
		}
		select {
		case <-ctx.Done():
			return Token{}, fmt.Errorf("no join token: %w (%w)", err, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// readSecret reads a small regular file that others may not read.
func readSecret(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s is no file of a secret", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s has mode %04o: everybody can read the secret in it (chmod 600)",
			path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}
