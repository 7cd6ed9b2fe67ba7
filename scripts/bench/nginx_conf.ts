/** The content of an nginx. */
export type NginxSite =
  | { readonly kind: "directory"; readonly root: string }
  | { readonly kind: "proxy"; readonly cacheFolder: string; readonly upstreamUrl: string }
  /** nginx in front of a larder that leaves its stored NARs to it. */
  | { readonly kind: "front"; readonly narFolder: string; readonly larderUrl: string };

/**
 * One worker: like larder's event loop it uses one core, and the load has the other. With two
 * workers, nginx and the load would share cores, and its figures depend on the scheduler.
 */
export const NGINX_WORKERS = 1;

/**
 * A configuration that needs no right but to write to `folder`. It keeps nginx's defaults, its log
 * of requests included; each server of the bench writes one. But `sendfile` and `tcp_nopush` are
 * on, and connections stay: those of the load, and those to an upstream.
 */
export function nginxConf(folder: string, port: number, site: NginxSite): string {
  // As root, the workers would otherwise change to a user without access to the folder.
  const user = Deno.uid() === 0 ? "user root root;\n" : "";
  return `${user}daemon off;
worker_processes ${NGINX_WORKERS};
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log ${folder}/access.log combined;
  default_type application/octet-stream;
  types { text/x-nix-narinfo narinfo; application/x-nix-nar nar; }
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
${serverOf(port, site)}
}
`;
}

function serverOf(port: number, site: NginxSite): string {
  switch (site.kind) {
    case "directory":
      return directory(port, site);
    case "proxy":
      return proxy(port, site);
    case "front":
      return front(port, site);
  }
}

function directory(port: number, { root }: NginxSite & { kind: "directory" }): string {
  return `  server {
    listen 127.0.0.1:${port};
    root ${root};
  }`;
}

function proxy(port: number, site: NginxSite & { kind: "proxy" }): string {
  const { cacheFolder, upstreamUrl } = site;
  return `  proxy_cache_path ${cacheFolder} levels=1:2 keys_zone=nars:64m max_size=100g
    inactive=1d use_temp_path=off;
  upstream origin {
    server ${new URL(upstreamUrl).host};
    keepalive 64;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache nars;
      proxy_cache_valid 200 1d;
      proxy_cache_valid 404 1h;
      add_header X-Cache $upstream_cache_status always;
    }
  }`;
}

/** The lines of docs/reverse-proxy.md that concern a stored NAR. */
function front(port: number, { narFolder, larderUrl }: NginxSite & { kind: "front" }): string {
  return `  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${larderUrl};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Sendfile-Type X-Accel-Redirect;
    }
    location /larder-nars/ {
      internal;
      alias ${narFolder}/;
      etag off;
      add_header ETag $upstream_http_etag;
      add_header X-Cache $upstream_http_x_cache;
      add_header X-Request-Id $upstream_http_x_request_id;
    }
  }`;
}
