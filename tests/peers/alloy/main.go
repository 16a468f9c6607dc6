// Alloy's runtime with two components: pyroscope.scrape and pyroscope.write.
// The argument is a file of configuration.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	_ "github.com/grafana/alloy/internal/component/pyroscope/scrape"
	_ "github.com/grafana/alloy/internal/component/pyroscope/write/glue"
	"github.com/grafana/alloy/internal/featuregate"
	"github.com/grafana/alloy/internal/runtime"
	"github.com/grafana/alloy/internal/runtime/logging"
	"github.com/grafana/alloy/internal/service"
	"github.com/grafana/alloy/internal/service/cluster"
	"github.com/grafana/alloy/internal/service/http"
	"github.com/grafana/alloy/internal/service/labelstore"
	"github.com/grafana/alloy/internal/service/livedebugging"
)

// What the components ask for by name, without a server behind it.
type given struct {
	name string
	data any
}

func (g *given) Definition() service.Definition {
	return service.Definition{Name: g.name, Stability: featuregate.StabilityExperimental}
}

func (g *given) Run(ctx context.Context, _ service.Host) error {
	<-ctx.Done()
	return nil
}

func (g *given) Update(any) error { return nil }
func (g *given) Data() any        { return g.data }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	logger, err := logging.New(os.Stderr, logging.DefaultOptions)
	check(err)
	folder, err := os.MkdirTemp("", "alloy")
	check(err)
	alloy, err := runtime.New(runtime.Options{
		Logger:       logger,
		DataPath:     folder,
		MinStability: featuregate.StabilityGenerallyAvailable,
		Services: []service.Service{
			livedebugging.New(),
			labelstore.New(logger.Slog(), prometheus.NewRegistry()),
			&given{http.ServiceName, http.Data{
				HTTPListenAddr: "127.0.0.1:0", MemoryListenAddr: "alloy.internal:0",
				BaseHTTPPath: "/", DialFunc: (&net.Dialer{}).DialContext}},
			&given{cluster.ServiceName, cluster.Mock()},
		},
	})
	check(err)
	go alloy.Run(context.Background())
	source, err := runtime.ParseSource("", text)
	check(err)
	check(alloy.LoadSource(source, nil, os.Args[1]))
	time.Sleep(time.Hour)
}
