package main

import (
	"context"
	"drainit/config"
	"drainit/control"
	"encoding/json"
	"fmt"
	"os"
)

func client(c *config.Client) int {
	addr, err := control.Find(os.LookupEnv)
	if err != nil {
		refuse(err)
		return 69
	}
	a, err := control.Ask(context.Background(), addr, control.Request{Verb: c.Verb, Budget: c.Budget, AnnounceDelay: c.AnnounceDelay}, func(t string) { fmt.Println(t) })
	if err != nil {
		refuse(err)
		return 69
	}
	b, _ := json.Marshal(a.Status)
	fmt.Println(a.Text, string(b))
	return a.Code
}
