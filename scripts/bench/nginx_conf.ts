/** The content of an nginx. */
export type NginxSite =
  | { readonly kind: "directory"; readonly root: string }
  | { readonly kind: "proxy"; readonly cacheFolder: string; readonly upstreamUrl: string };

/**
 * A configuration that needs no right but to write to `folder`. It keeps nginx's defaults, its log
 * of requests included; each server of the bench writes one. But `sendfile` and `tcp_nopush` are
 * on, and connections stay: those of the load, and those to an upstream. One worker: like larder's
 * event loop it uses one core, and the load has the other.
 */
export function nginxConf(folder: string, port: number, site: NginxSite): string {
  // As root, the workers would otherwise change to a user without access to the folder.
  const user = Deno.uid() === 0 ? "user root root;\n" : "";
  return `${user}daemon off;
worker_processes 1;
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
${site.kind === "directory" ? directory(port, site.root) : proxy(port, site)}
}
`;
}

function directory(port: number, root: string): string {
  return `  server {
    listen 127.0.0.1:${port};
    root ${root};
  }`;
}

function proxy(port: number, site: NginxSite & { readonly kind: "proxy" }): string {
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
