//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// refuse starts two workers of a job that needs no more, and then one that has another token;
// what it says last is what the outcome has. After is until it has ended and the job has gone on
// for some steps since it came.
func refuse(ctx context.Context, program, dir string, k kind, scheme string, _ fault) (outcome,
	error) {
	save, token := filepath.Join(dir, "run"), filepath.Join(dir, "token")
	for _, old := range []string{save, token} {
		if err := os.RemoveAll(old); err != nil {
			return outcome{}, err
		}
	}
	at, err := free()
	if err != nil {
		return outcome{}, err
	}
	args := func(rank, file string) []string {
		return append(k.args(""), "--workers", "3", "--rank", rank, "--master", at, "--tls", "auto",
			"--token-file", file)
	}
	var jobs []*job
	for _, rank := range []string{"0", "1"} {
		j, err := start(ctx, program, save, scheme, args(rank, token))
		if err != nil {
			return outcome{}, err
		}
		defer j.Process.Kill()
		jobs = append(jobs, j)
	}
	first := jobs[0]
	if err := first.reach(2*between, startWithin); err != nil {
		return outcome{}, err
	}
	wrong, err := forged(token)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	said, err := alone(ctx, program, save, scheme, args("2", wrong))
	if err != nil {
		return outcome{}, err
	}
	o, err := first.outcome(began)
	if err == nil && o.end == "goes on" {
		_ = jobs[1].Process.Signal(syscall.SIGTERM) // it has ended, or is about to
		<-jobs[1].ended
	}
	o.said = said
	return o, err
}

// forged is a file like a token's, with another secret.
func forged(token string) (string, error) {
	text, err := os.ReadFile(token)
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	with := byte('A')
	if text[len(text)-8] == with {
		with = 'B'
	}
	text[len(text)-8] = with
	return token + ".wrong", os.WriteFile(token+".wrong", text, 0o600)
}

// alone runs a worker that ends with an error, and is its last line.
func alone(ctx context.Context, program, save, scheme string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	c := exec.CommandContext(ctx, program, command(save, scheme, args)...)
	out, err := c.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if c.ProcessState == nil || c.ProcessState.ExitCode() != 1 {
		return "", fmt.Errorf("a worker with a wrong token: %w: %s", err, out)
	}
	return strings.TrimPrefix(lines[len(lines)-1], "gomem: "), nil
}
